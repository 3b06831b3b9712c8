"""End worker processes together with the process that started them."""

import multiprocessing
import os
import threading
from multiprocessing.connection import wait


def die_with_parent() -> None:
    """End this process of `multiprocessing` as soon as its parent has ended, even if the parent was killed."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
