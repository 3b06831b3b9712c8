"""Proportions with their intervals, charts and durations."""

import httpx
import pytest

from ecgquorum.service import desk_metrics
from ecgquorum.service.charts import confusion, deferral
from ecgquorum.service.desk_metrics import TimeStep, measure_drift
from ecgquorum.service.proportions import proportion
from ecgquorum.service.templating import format_duration
from ecgquorum.triage import Budget

from .conftest import listening, put
from .test_growth import close_cases


@pytest.mark.parametrize(
    ("count", "total", "low", "high"), [(0, 10, 0.0, 0.27753), (5, 10, 0.23659, 0.76341), (10, 10, 0.72247, 1.0)]
)
def test_wilsons_interval(count, total, low, high):
    found = proportion(count, total)
    assert found.value == count / total
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-5)


def test_an_empty_count_has_no_proportion():
    assert proportion(0, 0).value is None


def test_steps_without_an_answer_have_no_deferral():
    steps = [
        TimeStep(at=f"2026-01-0{day}T00:00:00+00:00", uploaded=4, answered=n, deferred=n // 2, reviewed=0)
        for day, n in enumerate((4, 0, 2), 1)
    ]
    found = deferral(steps)
    assert [one.value for one in found] == [50.0, 50.0]
    assert [one.x for one in found] == pytest.approx([100 / 6, 500 / 6])


def test_the_largest_count_has_the_darkest_cell():
    rows = dict(confusion({"N": {"N": 10, "A": 1}, "A": {"N": 0, "A": 5}}))
    assert [[cell.shade for cell in cells] for cells in rows.values()] == [[5, 1], [0, 3]]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (61, "1 min 1 s"), (3600, "1 h"), (90061, "1 day 1 h"), (172860, "2 days 1 min"), (86400, "1 day")],
)
def test_durations_have_two_units(seconds, text):
    assert format_duration(seconds) == text


def test_drift_is_by_the_score_of_the_policy_where_results_have_it():
    scores = [1 - p for p in (0.95, 0.6, 0.55, 0.7)]
    above = measure_drift([0.2] * 4, scores, Budget(0.1, 0.35, score="confidence")).above
    assert (above.count, above.total) == (2, 4)
    assert measure_drift([0.2] * 4, [0.1] * 4, Budget(0.1, 0.35, score="risk")).above.count == 0
    unknown = measure_drift([0.2] * 4, [None] * 4, Budget(0.1, 0.35, score="variation_ratio"))
    assert unknown.above is None and unknown.moved is None


def test_metrics_do_not_move_with_a_single_open_case(make_desk, examples, classify, monkeypatch):
    """Whether an open case was deferred or drawn, and its uncertainty, stay hidden; those of groups are counted."""
    monkeypatch.setattr(desk_metrics, "_GROUP", 4)
    desk = make_desk(audit_share=1.0)
    paths = sorted(examples.glob("r*.npz"))
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:

        def metrics():
            return client.get("/api/measures").json()

        n_in_drift = []
        for number, path in enumerate(paths[:5], start=1):
            put(client, path).raise_for_status()
            classify(desk)
            found = metrics()
            assert found["deferral"]["count"] == found["deferral"]["total"] == number, "deferred or drawn: all alike"
            assert sum(step["deferred"] for step in found["steps"]) == number
            n_in_drift.append(sum(found["drift"]["bins"]))
        assert n_in_drift == [0, 0, 0, 4, 4]
        ids = [one["id"] for one in client.get("/api/recordings").json()["cases"]]
        close_cases(client, ids)
        found, certain = metrics(), [client.get(f"/api/recordings/{one}").json()["answer"]["audited"] for one in ids]
        assert sum(found["drift"]["bins"]) == 5 and found["deferral"]["count"] == 5 - sum(certain)
