"""Tasks for tests of executors; module functions, so that worker processes can import them."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import torch

from ecgquorum.errors import TrainingError


def double(offset, item):
    return offset + 2 * item


def is_imported(item):
    return item in sys.modules


def timed_sleep(item):
    """When it began and ended; it takes the item's seconds."""
    began = time.monotonic()
    time.sleep(item)
    return began, time.monotonic()


def wait_for_mark(folder, item):
    """Ends when there is a mark with the item's name; at once for an item without."""
    while item is not None and not (Path(folder) / item).exists():
        time.sleep(0.02)


def die_at_first(folder, item):
    """Kills its process the first time it gets this item."""
    mark = Path(folder) / f"begun-{item}"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


N_SENT = 100_000_000


def die_while_sending(folder, item):
    """Even items die the first time, soon after the function has returned."""
    mark = Path(folder) / f"begun-{item}"
    if item % 2 == 0 and not mark.exists():
        mark.touch()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return bytes(N_SENT)


class Log:
    """Keeps the lines that were logged."""

    def __init__(self):
        self.lines = []

    def update(self, text, done, total):
        pass

    def log(self, line):
        self.lines.append(line)


def die(item):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(item):
    raise TrainingError(f"{item}: expected something else")


def multiply(seed):
    """Threads, and a product whose last bits depend on them."""
    generator = torch.Generator().manual_seed(seed)
    return torch.get_num_threads(), torch.randn(300, 300, generator=generator).matrix_power(3)


def process(item):
    return os.getpid()


class Elsewhere:
    """Can be pickled but not unpickled."""

    def __reduce__(self):
        return open, ("/nowhere/at/all",)
