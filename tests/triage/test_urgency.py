"""Urgency: rules about classes, windows and a floor, which hold whatever the policy says."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import load_ensemble
from ecgquorum.ensemble.result import Result, WindowResult
from ecgquorum.errors import PolicyError
from ecgquorum.preprocessing.quality import Finding, Quality, Severity
from ecgquorum.triage import Threshold, Urgency, policy_from, urgency_of
from ecgquorum.triage.journal import Journal, JournalEntry

RULES = Urgency(urgent=("STE", "AF"), always=("PVC",), never=("PAC",), floor=0.5)


def result(name="r", label="N", probability=0.9, risk=0.1, windows=(), **changes):
    parts = tuple(
        one if isinstance(one, WindowResult) else WindowResult(60.0 * i, 60.0, one, 0.8, 0.1 * i)
        for i, one in enumerate(windows or (label,))
    )
    rest = {"other": round(1 - probability, 5)}
    one = Result(name, f"/in/{name}.hea", label, {label: probability, **rest}, risk=risk, windows=parts)
    return replace(one, **changes)


@pytest.mark.parametrize(
    ("given_result", "decision", "by", "reason"),
    [
        (result(), None, None, None),
        (result(label="STE"), None, None, None),
        (result(label="PVC"), "deferred", "urgency", "PVC always goes to a person"),
        (result(label="PAC"), "certain", "urgency", "PAC never goes to a person"),
        (result(label="PAC", probability=0.2), "deferred", "floor", "probability 0.20000 is below the floor, 0.5"),
        (
            result(windows=tuple(WindowResult(60.0 * i, 60.0, "N", share, 0.1) for i, share in enumerate((0.9, 0.3)))),
            "deferred",
            "floor",
            "probability 0.30000 at 60 s is below the floor, 0.5",
        ),
        (result(probability=0.28), "deferred", "floor", "probability 0.28000 is below the floor, 0.5"),
        (result(probability=0.5), None, None, None),
        (result(windows="NNN"), None, None, None),
        (result(windows="NON"), "deferred", "windows", "its 3 windows disagree: N, O"),
        (result(windows=["N", "AF", "N", "AF"]), "deferred", "windows", "2 of 4 windows are AF, an urgent class"),
        (result(label="AF", windows=["AF", "AF"]), "deferred", "windows", "2 of 2 windows are AF, an urgent class"),
        (result(label="PAC", windows=["PAC", "AF"]), "deferred", "windows", "1 of 2 windows are AF, an urgent class"),
    ],
)
def test_rules_decide_before_the_policy(given_result, decision, by, reason):
    decided = RULES.apply(given_result)
    if decision is None:
        assert decided is None
    else:
        assert (decided.decision, decided.decided_by, decided.reason) == (decision, by, reason)


@given(st.floats(0, 1), st.floats(0, 1))
def test_nothing_below_the_floor_is_certain(probability, floor):
    decided = Urgency(floor=floor).apply(result(probability=probability))
    assert (decided is not None) == (probability < floor)


def test_the_most_urgent_class_counts():
    ranked = RULES.rank(result(windows=["N", "AF", "STE"]))
    assert (ranked.urgency, ranked.urgent_class, ranked.worst_window.start_s) == (1, "STE", 120.0)
    assert RULES.rank(result(label="AF")).urgency == 2 and RULES.rank(result()).urgency is None
    assert RULES.rank(result(windows="NON")).worst_window.start_s == 120.0, "the highest risk"


def test_rules_are_kept_in_a_card():
    policy = Threshold(0.3, urgency=RULES)
    assert policy_from(json.loads(json.dumps(policy.card()))) == policy
    assert Urgency.from_card(json.loads(json.dumps(RULES.card()))) == RULES
    for wrong in ({"floor": 2}, {"urgnt": []}, {"always": ["A"], "never": ["A"]}):
        with pytest.raises(PolicyError, match="expected|cannot"):
            Urgency.from_card(wrong)
    with pytest.raises(PolicyError, match="expected classes of N, A, found AF, PAC, PVC, STE"):
        RULES.check(("N", "A"))


def test_shipped_bundles_have_usual_rules():
    ensemble = load_ensemble("cpsc2018")
    assert urgency_of(ensemble) == Urgency(("STE", "STD", "AF"))
    ensemble.card["policy"]["urgency"] = RULES.card()
    assert urgency_of(ensemble) == RULES


def journal_of(tmp_path, *results):
    journal = Journal(tmp_path / "journal.sqlite", {})
    journal.add([JournalEntry(RULES.rank(one), "stamp") for one in results])
    return journal


def test_urgent_classes_come_before_higher_risks(tmp_path):
    rows = [
        result("a", risk=0.9),
        result("b", "AF", risk=0.2),
        result("c", "STE", risk=0.1),
        result("d", "AF", risk=0.3),
    ]
    with journal_of(tmp_path, *(one.with_decision("deferred", "why") for one in rows)) as journal:
        found = [entry.result for entry in journal.entries()]
    assert [one.id for one in found] == ["c", "d", "b", "a"]
    assert found[0].placement == "deferred by policy, urgency 1 (STE), risk 0.100"
    assert found[0].to_csv_row()["placement"] == found[0].placement and found[0].to_csv_row()["urgency"] == 1


def test_doubtful_quality_does_not_use_up_the_budget(tmp_path):
    poor = Quality((Finding("mains", Severity.DOUBTFUL, "much"),))
    doubtful = [
        replace(result(f"q{i}"), quality=poor, decision="deferred", decided_by="quality", reason="mains")
        for i in range(10)
    ]
    usable = [result(f"u{i}", risk=i / 10).with_decision("certain") for i in range(10)]
    with journal_of(tmp_path, *doubtful, *usable) as journal:
        found = {entry.result.id: entry.result for entry in journal.entries(budget=0.2)}
    by_budget = sorted(name for name, one in found.items() if one.decision == "deferred" and one.decided_by == "policy")
    assert by_budget == ["u8", "u9"], "20 % of the ten that can be used"
    assert all(found[f"q{i}"].decision == "deferred" for i in range(10))


def test_rules_count_within_the_budget_and_do_not_give_way(tmp_path):
    forced = [RULES.apply(result(f"f{i}", probability=0.3, risk=0.05)) for i in range(3)]
    usable = [result(f"u{i}", risk=i / 10).with_decision("certain") for i in range(7)]
    with journal_of(tmp_path, *forced, *usable) as journal:
        few = [e.result.id for e in journal.entries(budget=0.1) if e.result.decision == "deferred"]
        more = [e.result.id for e in journal.entries(budget=0.5) if e.result.decision == "deferred"]
    assert sorted(few) == ["f0", "f1", "f2"] and sorted(more) == ["f0", "f1", "f2", "u5", "u6"]


def test_ids_are_unique(tmp_path):
    paths = ["/in/a/x.hea", "/in/b/x.hea", "/in/b/x.edf", "/in/y.hea"]
    results = [replace(result(), id=path.split("/")[-1][0], source=path).with_decision("certain") for path in paths]
    with journal_of(tmp_path, *results) as journal:
        assert {e.result.source: e.result.id for e in journal.entries()} == {
            "/in/a/x.hea": "a/x.hea",
            "/in/b/x.hea": "b/x.hea",
            "/in/b/x.edf": "b/x.edf",
            "/in/y.hea": "y",
        }
