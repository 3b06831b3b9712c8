"""Commands in processes of their own, for tests that kill them, interrupt them or change what is installed.

They are forked from a server that has loaded PyTorch, which takes longer than most of these commands.
"""

import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
_PRELOADED = [
    "torch",
    "scipy.signal",
    "ecgquorum.cli",
    "ecgquorum.study",
    "ecgquorum.triage",
    "ecgquorum.evaluation",
    "ecgquorum.recordings.sandbox",
]
CONTEXT.set_forkserver_preload(_PRELOADED)


def preload(*modules):
    """Have the server load these too, unless it runs already."""
    CONTEXT.set_forkserver_preload([*_PRELOADED, *modules])


class Command:
    """`ecgquorum ARGUMENTS` in a process of its own.

    cwd:         where it runs
    packages:    folders from which it can import, as if they were installed
    threads:     of PyTorch; None: as many as it takes by itself
    new_session: it and the processes it starts are a group of their own, with its process id
    environment: variables to set; None removes one
    function:    of a module, to be called instead of the command line, with the same `sys.argv`
    """

    def __init__(
        self,
        *arguments,
        cwd=".",
        packages=(),
        threads=None,
        new_session=False,
        environment=None,
        function=None,
    ):
        folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._files = [str(Path(folder) / name) for name in ("stdout", "stderr")]
        place = (self._files, str(cwd), list(map(str, packages)), environment or {})
        given = (function or _run_command_line, list(map(str, arguments)), place, threads, new_session)
        self._process = CONTEXT.Process(target=_run, args=given)
        self._process.start()
        self.pid = self._process.pid

    def poll(self):
        """Its exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, seconds=240):
        """Its exit code, once it has ended."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, f"it has not ended within {seconds} s"
        return self._process.exitcode

    def kill(self):
        self._process.kill()
        self._process.join()

    def send_signal(self, number):
        os.kill(self.pid, number)

    @property
    def stdout(self):
        return Path(self._files[0]).read_text()

    @property
    def stderr(self):
        return Path(self._files[1]).read_text()


def _run(function, arguments, place, threads, new_session):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the process that started the server ignores
    files, cwd, packages, environment = place
    if new_session:
        os.setsid()
    for number, path in enumerate(files, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(cwd)
    if threads:
        import torch

        torch.set_num_threads(threads)
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    sys.path[:0] = packages
    os.environ["PYTHONPATH"] = os.pathsep.join([*packages, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.argv = ["ecgquorum", *arguments]
    from ecgquorum.parallel.process_guard import die_with_parent

    die_with_parent()
    function()


def _run_command_line():
    from ecgquorum.cli import main

    main()


def free_port():
    """A port below those that systems give to outgoing connections, one of which could take it before a server does."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
