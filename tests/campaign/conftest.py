"""How often a test of the campaign does what it does, and until when."""

import os
import time

import pytest


class Count:
    """A number of attempts, which a deadline may end early; the number really made is in the report.

    The number is that of the environment variable, else of a quick look. Each sitting has a seed of its own.
    """

    def __init__(self, variable, few, record_property):
        self.wanted = int(os.environ.get(variable, few))
        self.until = float(os.environ.get("ECGQUORUM_CAMPAIGN_UNTIL", "inf"))
        self.seed = int(os.environ.get("ECGQUORUM_CAMPAIGN_SEED", "1"))
        self.done, self._record = 0, record_property

    @property
    def goes_on(self):
        return self.done < self.wanted and (self.done == 0 or time.time() < self.until)

    def add(self, number=1):
        self.done += number

    def finish(self, **found):
        """Put the number, and what else was found, into the report."""
        for name, value in {"done": self.done, **found}.items():
            self._record(name, value)


@pytest.fixture
def count(record_property):
    return lambda variable, few: Count(f"ECGQUORUM_{variable}", few, record_property)
