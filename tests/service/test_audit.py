"""The audit log finds every entry that was changed, removed or moved, on SQLite and on PostgreSQL."""

import pytest
from sqlalchemy import delete, update

from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import AuditRow, HeadRow


@pytest.fixture
def log(store):
    with store.write_session() as session:
        for number in range(12):
            audit.append(session, store.now(), "me", "did", f"thing {number}", {"n": number})
    return store


def verdict_on(store, noted=None):
    with store.read_session() as session:
        return audit.verify_log(session, noted)


def test_an_unchanged_log_is_valid(log):
    found = verdict_on(log)
    assert (found.n_entries, found.problem) == (12, "")
    assert verdict_on(log, (12, found.head)).problem == ""


@pytest.mark.parametrize(
    ("column", "value"),
    [("actor", "you"), ("at", "2020"), ("action", "x"), ("subject", ""), ("details", {}), ("sha256", "0" * 64)],
)
def test_a_changed_entry_is_found(log, column, value):
    with log.write_session() as session:
        session.execute(update(AuditRow).where(AuditRow.number == 7).values({column: value}))
    assert verdict_on(log).n_entries == 6 and "7" in verdict_on(log).problem


def test_a_removed_or_reordered_entry_is_found(log):
    with log.write_session() as session:
        session.execute(delete(AuditRow).where(AuditRow.number == 5))
    assert "entry 5 is missing" in verdict_on(log).problem
    with log.write_session() as session:
        session.execute(update(AuditRow).where(AuditRow.number > 5).values(number=AuditRow.number + 100))
        session.execute(update(AuditRow).where(AuditRow.number > 100).values(number=AuditRow.number - 101))
    assert "entry 5" in verdict_on(log).problem


def test_a_changed_entry_that_was_hashed_again_breaks_the_next(log):
    with log.write_session() as session:
        row = session.get(AuditRow, 7)
        row.actor = "you"
        row.sha256 = audit.entry_sha256(row)
    assert "entry 8 does not follow" in verdict_on(log).problem


def test_a_truncated_log_is_detected_by_its_head_or_a_saved_one(log):
    noted = (12, verdict_on(log).head)
    with log.write_session() as session:
        session.execute(delete(AuditRow).where(AuditRow.number > 9))
    assert "its head says 12" in verdict_on(log).problem
    with log.write_session() as session:
        session.get(HeadRow, 1).number = 9
        session.get(HeadRow, 1).sha256 = session.get(AuditRow, 9).sha256
    assert verdict_on(log).problem == ""
    assert "entry 12 was expected" in verdict_on(log, noted).problem


def test_a_log_that_grows_during_its_check_stays_valid(log, monkeypatch):
    entries, check = audit.entries, audit.GrowingCheck()

    def read_while_another_writes(session, after=0):
        yield from entries(session, after)
        with log.write_session() as other:
            audit.append(other, log.now(), "you", "did", "another thing")

    monkeypatch.setattr(audit, "entries", read_while_another_writes)
    with log.read_session() as session:
        assert check.update(session).problem == ""
    monkeypatch.undo()
    with log.read_session() as session:
        assert (check.update(session).n_entries, check.update(session).problem) == (13, "")
