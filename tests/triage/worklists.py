"""Compare worklists as docs/explanation/reproducibility.md promises: decisions exactly, numbers to the tolerance."""

import json
import re

import numpy as np

from ecgquorum.ensemble.prediction import TOLERANCE

SCORES = ("entropy", "mutual_information", "uncertainty", "distance", "risk")
NUMBERS = (*SCORES, "probabilities", "raw_probabilities", "raw_member_probabilities")
DECIDED = ("label", "decision", "reason", "decided_by", "urgency", "urgent_class", "windows")


def read_worklist(out):
    return [json.loads(line) for line in (out / "worklist.jsonl").read_text().splitlines()]


def assert_same_worklist(found, expected, ensemble, threshold=np.inf):
    """Compare the rows of two worklists of the same recordings.

    A decision may differ only where a printed number is within the tolerance of another that it is compared with: the
    likeliest class's probability and the next one's, or the risk and the limit between deferred and certain.

    threshold: the policy's; without one the limit is between deferred and certain recordings
    """
    low, high = ensemble.information_range
    tolerance = 2 * TOLERANCE / min(1.0, high - low)
    ours, theirs = ({row["source"]: row for row in rows} for rows in (found, expected))
    assert ours.keys() == theirs.keys() and len(found) == len(expected)
    sure = [row["risk"] for row in expected if row["decision"] == "certain"]
    unsure = [row["risk"] for row in expected if row["decision"] == "deferred" and row["decided_by"] == "policy"]
    for source, row in theirs.items():
        other = ours[source]
        for name in row.keys() - {*NUMBERS, *DECIDED}:
            assert other[name] == row[name], (source, name)
        for name in NUMBERS:
            if name in row:
                np.testing.assert_allclose(_flat(other[name]), _flat(row[name]), rtol=0, atol=tolerance)
        at_limit = row["decided_by"] == "policy" and (
            min(unsure, default=np.inf) - tolerance <= row["risk"] <= max(sure, default=-np.inf) + tolerance
            or abs(row["risk"] - threshold) <= tolerance
        )
        likeliest = [-np.inf, -np.inf, *sorted(row["probabilities"].values())][-2:]
        if not at_limit and not likeliest[1] - likeliest[0] <= tolerance:
            for name in DECIDED:
                assert _wording(other[name]) == _wording(row[name]), (source, name)
    for decision in ("deferred", "certain"):
        rows = [row for row in found if row["decision"] == decision]
        places = [row["urgency"] or np.inf for row in rows]
        assert places == sorted(places), "urgent classes come first"
        for place in set(places):
            shown = [theirs[row["source"]]["risk"] for row in rows if (row["urgency"] or np.inf) == place]
            assert (np.diff(shown) <= tolerance).all(), "then the highest risks"


def _flat(value):
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in _flat(one)]
    return [np.nan if value is None else value]


def _wording(value):
    if isinstance(value, list):  # windows
        return [(one["start_s"], one["label"]) for one in value]
    return re.sub(r"\d+\.\d+", "#", value) if isinstance(value, str) else value
