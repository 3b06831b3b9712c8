"""Ctrl-C that arrives inside a destructor or a callback of the interpreter."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_stack
from types import CodeType
from typing import Any

_PAUSE_S = 0.01


@contextmanager
def repeat_lost_interrupts() -> Iterator[None]:
    """Send Ctrl-C again where Python has discarded it while the block runs.

    Python cannot raise an error out of a destructor, or a callback of a weak reference or of the garbage collector: it
    prints the error and goes on. A KeyboardInterrupt there would be lost, and the command would run to its end.
    """
    before, ended = sys.unraisablehook, threading.Event()

    def repeat(unraisable: Any) -> None:
        if unraisable.exc_type is not None and issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Thread(target=_interrupt_after, args=(repeat.__code__, ended), daemon=True).start()
        else:
            before(unraisable)

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        ended.set()
        sys.unraisablehook = before


def _interrupt_after(code: CodeType, ended: threading.Event) -> None:
    """Send Ctrl-C once the main thread has left `code`, in which it would be discarded again, unless all has ended."""
    main = threading.main_thread().ident or 0
    while any(frame.f_code is code for frame, _ in walk_stack(sys._current_frames()[main])):
        time.sleep(_PAUSE_S)
    if not ended.is_set():
        os.kill(os.getpid(), signal.SIGINT)
