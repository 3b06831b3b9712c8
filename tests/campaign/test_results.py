"""The table of a campaign says what was really run, in all sittings together."""

import pytest

from .results import Results, Row, read_report

KILLS = Row("kills", "test_kills.py", 50, "KILLS")
DISKS = Row("disks", "test_full_disk.py", 3)


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path, [KILLS, DISKS])


def sitting(seed=1, stopped=False, **tests):
    """A sitting with these tests: a number is what one that passed has done, a word why one failed."""
    found = {
        name: {"outcome": "failed", "message": value, "properties": {}}
        if isinstance(value, str)
        else {"outcome": "passed", "message": "", "properties": {"done": value}}
        for name, value in tests.items()
    }
    return {"seed": seed, "minutes": 1.0, "stopped": stopped, "tests": found}


def test_sittings_of_a_count_add_up_once_for_each_seed(results, tmp_path):
    assert results.next_seed(KILLS) == 1 and "not run" in results.line(KILLS)
    results.add(KILLS, sitting(seed=1, a=20))
    assert results.next_seed(KILLS) == 2 and not results.is_complete(KILLS)
    results.add(KILLS, sitting(seed=2, a=20))
    results.add(KILLS, sitting(seed=2, a=20))
    assert results.done(KILLS) == 40
    Results(tmp_path, [KILLS]).add(KILLS, sitting(seed=3, a=10))
    again = Results(tmp_path, [KILLS])
    assert (
        again.is_complete(KILLS) and "| kills | 50 | 50 | passed | 4 | 4.0 |" in (tmp_path / "campaign.md").read_text()
    )


def test_two_processes_at_a_time_lose_no_sitting(results, tmp_path):
    other = Results(tmp_path, [KILLS, DISKS])
    results.add(KILLS, sitting(a=20))
    other.add(DISKS, sitting(a=1))
    results.refresh()
    found = Results(tmp_path, [KILLS, DISKS])
    assert (found.done(KILLS), found.done(DISKS)) == (20, 1)


def test_a_failure_counts_nothing_and_is_told_after_it_is_mended(results):
    results.add(KILLS, sitting(seed=1, a="lost"))
    assert results.done(KILLS) == 0 and results.next_seed(KILLS) == 1 and results.failures(KILLS) == ["a: lost"]
    results.add(KILLS, sitting(seed=1, a=50))
    assert results.outcome(KILLS) == "passed; failed in 1 earlier sitting" and results.is_complete(KILLS)


def test_a_sitting_that_was_stopped_has_done_nothing(results):
    results.add(KILLS, sitting(stopped=True))
    assert results.outcome(KILLS) == "not finished; stopped at the time limit" and results.next_seed(KILLS) == 1


def test_without_a_count_the_last_run_of_each_test_counts(results):
    results.add(DISKS, sitting(a=1, b=1, c="full"))
    assert (results.done(DISKS), results.is_complete(DISKS)) == (2, False)
    results.add(DISKS, sitting(seed=2, a=1, c=1))
    assert (results.done(DISKS), results.is_complete(DISKS)) == (3, True)


def test_a_report_of_pytest_is_read(tmp_path):
    (tmp_path / "report.xml").write_text(
        '<testsuites><testsuite><testcase name="a"><properties><property name="done" value="7"/></properties>'
        '</testcase><testcase name="b"><failure message="no\nmore"/></testcase>'
        '<testcase name="c"><skipped message="root"/></testcase></testsuite></testsuites>'
    )
    found = read_report(tmp_path / "report.xml")
    assert found["a"] == {"outcome": "passed", "message": "", "properties": {"done": 7.0}}
    assert (found["b"]["outcome"], found["c"]["outcome"], found["c"]["message"]) == ("failed", "skipped", "root")
