"""Ctrl-C is not lost in a destructor."""

import os
import signal
import sys
import time

import pytest

from ecgquorum.cli.interrupts import repeat_lost_interrupts


class Interrupted:
    """Gets Ctrl-C while it is destroyed."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


@pytest.fixture
def default_handler():
    """Python's handler of Ctrl-C, whatever other tests of this process have left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_in_a_destructor_stops_the_command():
    before = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), repeat_lost_interrupts():
        Interrupted()
        for _ in range(600):
            time.sleep(0.1)
        pytest.fail("it was lost")
    assert sys.unraisablehook is before


def test_other_errors_in_destructors_are_reported_as_before(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(unraisable.exc_type))

    class Broken:
        def __del__(self):
            raise ValueError

    with repeat_lost_interrupts():
        Broken()
    assert reported == [ValueError]
