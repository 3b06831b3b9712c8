"""The benchmarks run, and their instrument measures what it should."""

import time

import pytest

from benchmarks.alternating import ratios
from benchmarks.training import measured


def test_ratios_are_of_times():
    found = ratios({"one": lambda: time.sleep(0.01), "three": lambda: time.sleep(0.03)}, 5)
    assert found["one"] == 1.0
    assert found["three"] == pytest.approx(3, rel=0.3)


def test_a_training_step_of_every_strategy_can_be_timed(tiny_cohort, monkeypatch):
    monkeypatch.setattr("benchmarks.training.BATCH", 36)
    monkeypatch.setattr("benchmarks.training.SECONDS", {"compact": 2.0})
    found = measured("compact", tiny_cohort, 1)
    assert list(found) == ["baseline", "dec", "part", "dec+part"]
    assert all(ratio > 0.2 for ratio in found.values())
