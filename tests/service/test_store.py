"""The store of the desk, on SQLite and on PostgreSQL."""

import threading
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import select, text

from ecgquorum.ensemble.result import Result
from ecgquorum.errors import DeskError
from ecgquorum.service.http_errors import ConflictError, NotFoundError, UnprocessableError
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import Store, audit, migrations, models, queue, recordings, reviews, tokens, worklist
from ecgquorum.service.store.judgements import make_judgement
from ecgquorum.service.store.queue import AuditSample, StoredTrace
from ecgquorum.service.store.recordings import IncomingFile
from ecgquorum.service.store.reviews import Reviewer
from ecgquorum.service.store.tables import Base, RecordingRow, ResultRow, State
from ecgquorum.service.store.worklist import WorklistFilter

CLASSES = ("N", "A")
NO_DRAW = AuditSample(0.0, b"secret")


def sha(letter):
    return letter * 64


def admit(store, arrived, uploader="u"):
    with store.write_session() as session:
        row, is_new = recordings.add_file(session, store.now(), uploader, arrived)
        return row.id, row.state, is_new


def single(letter, name=None):
    return IncomingFile(sha(letter), 10, name or f"{letter}.edf", ".edf")


def header(letter, *signals, name="p.hea"):
    return IncomingFile(sha(letter), 10, name, ".hea", alone=False, signals=signals)


def samples(letter, name="p.dat"):
    return IncomingFile(sha(letter), 10, name, ".dat", alone=False)


def make_result(recording_id, decision="deferred", label="N", risk=0.5):
    return Result(
        recording_id,
        "r.npz",
        label,
        probabilities={"N": 0.8, "A": 0.2},
        raw_probabilities={"N": 0.7, "A": 0.3},
        raw_member_probabilities=({"N": 0.7, "A": 0.3},),
        uncertainty=0.5,
        risk=risk,
        decision=decision,
        seconds=10.0,
        model_sha256=sha("f"),
    )


def classify(store, draw=NO_DRAW, worker="w", most=8, **answer):
    with store.write_session() as session:
        rows = queue.claim_recordings(session, store.now(), store.after(60), worker, most)
        trace = StoredTrace(500.0, ("I",), 5000)
        for row in rows:
            queue.store_result(session, store.now(), worker, make_result(row.id, **answer), trace, draw)
        return [row.id for row in rows]


def reviewer(store, name="reader", blind_first=True):
    return Reviewer(name, store.now(), store.after(900), blind_first)


def judge(session, row, who, *labels, kind="class", comment="", second=None):
    judgement = make_judgement(labels, kind, comment, CLASSES)
    return reviews.add_verdict(session, row, who, judgement, second)


def state_of(store, recording_id):
    with store.read_session() as session:
        return recordings.find_recording(session, recording_id).state


def test_the_migrations_make_the_tables_that_the_code_knows(store):
    with store._engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    store.migrate()  # again changes nothing


OLD_ROWS = """
INSERT INTO recordings (id, name, uploader, state, uploaded_at, attempts, audited, priority)
VALUES ('r', 'r.npz', 'u', 'deferred', '2026-01-01T00:00:00.000000Z', 1, false, 0.5);
INSERT INTO results (recording_id, model_sha256, at, label, decision, reason, uncertainty, probability,
    calibrated_probability, probabilities, member_probabilities, quality, quality_reasons, seconds)
VALUES ('r', 'f', '2026-01-01T00:00:01.000000Z', 'N', 'deferred', 'why', 0.5, 0.7,
    0.8, '{"N": 0.7, "A": 0.3}', '[{"N": 0.7, "A": 0.3}]', 'doubtful', '["noise on I: 50 Hz"]', 10.0);
INSERT INTO verdicts (recording_id, reader, stage, label, was_blind, at)
VALUES ('r', 'Ada', 'first', 'A', true, '2026-01-01T00:00:02.000000Z');
INSERT INTO tokens (id, name, role, sha256, created_at)
VALUES ('t', 'Ada', 'reader', 'x', '2026-01-01T00:00:00.000000Z');
INSERT INTO sessions (sha256, token_id, until) VALUES ('s', 't', '2026-01-01T12:00:00.000000Z')
"""


def test_results_of_an_older_desk_are_migrated(database, clock):
    store = Store(Settings(data=Path(), model="", database=database).database_url, clock)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with store._engine.connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for statement in OLD_ROWS.split(";"):
            connection.exec_driver_sql(statement)
    store.migrate()
    with store.read_session() as session:
        result = reviews.latest_result(session, "r").result
        (verdict,) = reviews.current_verdicts(session, recordings.find_recording(session, "r"))
        assert (verdict.kind, verdict.labels, verdict.comment) == ("class", ["A"], "")
        assert models.classes_of(session, reviews.latest_result(session, "r")) == (["N", "A"], {})
        assert tokens.list_tokens(session)[0].expires_at is None
    assert (result.label, result.probability, result.raw_probabilities) == ("N", 0.8, {"N": 0.7, "A": 0.3})
    assert result.quality.reasons == ("noise on I: 50 Hz",) and result.reason == "why" and result.seconds == 10.0
    store.close()


def test_the_same_content_is_one_recording_for_all_uploaders(store):
    first = admit(store, single("a"))
    assert first[1:] == (State.WAITING, True)
    assert admit(store, single("a", "other.edf"), "somebody else") == (first[0], State.WAITING, False)
    assert admit(store, single("b"))[0] != first[0]


@pytest.mark.parametrize("header_first", [True, False])
def test_a_pair_waits_until_both_files_are_there(store, header_first):
    files = [header("a", "p.dat"), samples("b")]
    early, late = files if header_first else files[::-1]
    first_id, state, is_new = admit(store, early)
    assert (state, is_new) == (State.INCOMPLETE, True)
    assert admit(store, early) == (first_id, State.INCOMPLETE, False)
    assert admit(store, late) == (first_id, State.WAITING, True)
    assert admit(store, early) == admit(store, late) == (first_id, State.WAITING, False)
    with store.read_session() as session:
        assert [file.sha256 for file in recordings.list_files(session, first_id)] == [sha("a"), sha("b")]


def test_pairs_of_different_uploaders_are_not_mixed(store):
    admit(store, header("a", "p.dat"), "one")
    assert admit(store, samples("b"), "two")[1] == State.INCOMPLETE


def test_several_signal_files_become_one_recording_and_their_ids_lead_to_it(store):
    loose = [admit(store, samples(letter, f"{letter}.dat"))[0] for letter in "bc"]
    whole, state, _ = admit(store, header("a", "b.dat", "c.dat", "d.dat"))
    assert state == State.INCOMPLETE and whole == loose[0]
    assert admit(store, samples("d", "d.dat"))[:2] == (whole, State.WAITING)
    with store.read_session() as session:
        assert {recordings.find_recording(session, one).id for one in loose} == {whole}
        with pytest.raises(NotFoundError):
            recordings.find_recording(session, "0" * 32)


def test_a_known_header_with_other_samples_is_another_recording(store):
    admit(store, samples("b"))
    first = admit(store, header("a", "p.dat"))[0]
    assert admit(store, samples("c"))[1] == State.INCOMPLETE
    second, state, is_new = admit(store, header("a", "p.dat"))
    assert (state, is_new) == (State.WAITING, True) and second != first


def test_the_same_pair_in_another_order_is_the_same_recording(store):
    admit(store, header("a", "p.dat"), "one")
    first = admit(store, samples("b"), "one")[0]
    admit(store, samples("b"), "two")
    assert admit(store, header("a", "p.dat"), "two")[0] == first


def test_a_claim_is_one_workers_until_it_expires(store, clock):
    admit(store, single("a"))
    with store.write_session() as session:
        (row,) = queue.claim_recordings(session, store.now(), store.after(60), "one", 8)
    with store.write_session() as session:
        assert queue.claim_recordings(session, store.now(), store.after(60), "two", 8) == []
    clock.passes(61)
    with store.write_session() as session:
        assert [r.id for r in queue.claim_recordings(session, store.now(), store.after(60), "two", 8)] == [row.id]
        assert not queue.store_result(session, store.now(), "one", make_result(row.id), None, NO_DRAW)
        assert queue.store_result(session, store.now(), "two", make_result(row.id), None, NO_DRAW)
        assert not queue.store_result(session, store.now(), "two", make_result(row.id), None, NO_DRAW)
    with store.read_session() as session:
        assert len(session.scalars(select(ResultRow)).all()) == 1


def test_retried_recordings_come_last_and_alone(store, clock):
    ids = [admit(store, single(letter))[0] for letter in "abc"]
    with store.write_session() as session:
        queue.claim_recordings(session, store.now(), store.after(60), "dies", 2)
    clock.passes(61)
    order = []
    while claimed := classify(store):
        order.append(claimed)
    assert order == [[ids[2]], [ids[0]], [ids[1]]]


def test_workers_that_race_share_the_work(store):
    ids = {admit(store, single(letter))[0] for letter in "0123456789abcde"}
    done, errors = [], []

    def work(name):
        try:
            while claimed := classify(store, worker=name, most=2):
                done.extend(claimed)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and sorted(done) == sorted(ids)
    with store.read_session() as session:
        assert audit.verify_log(session).problem == ""
        assert len(session.scalars(select(ResultRow)).all()) == len(ids)


def test_the_audit_sample_is_repeatable_near_its_share_and_keyed():
    draw = AuditSample(0.02, b"secret")
    names = [f"{i:064x}" for i in range(20_000)]
    drawn = {name for name in names if draw.includes(name)}
    assert 320 < len(drawn) < 480
    assert drawn == {name for name in names if AuditSample(0.02, b"secret").includes(name)}
    assert len(drawn & {name for name in names if AuditSample(0.02, b"other").includes(name)}) < 40


def test_only_certain_recordings_are_drawn_for_audit(store):
    for letter, decision in zip("ab", ("certain", "deferred"), strict=True):
        admit(store, single(letter))
        classify(store, AuditSample(1.0, b"s"), decision=decision)
    with store.read_session() as session:
        found = {row.state: row.audited for row in session.scalars(select(RecordingRow))}
        assert found == {"certain": True, "deferred": False}
        assert worklist.count_states(session)["open"] == 2


def test_the_worklist_is_in_the_order_of_risk_and_can_be_searched(store):
    for letter, risk in (("a", 0.2), ("b", 0.9), ("c", 0.5)):
        admit(store, single(letter, f"{letter}_100%.edf"))
        classify(store, risk=risk)
    admit(store, single("d"))
    classify(store, decision="certain")
    admit(store, single("e"))
    with store.read_session() as session:
        rows, total = worklist.query_worklist(session, WorklistFilter(), 10)
        assert [row.name[0] for row, _ in rows] == ["b", "c", "a", "e", "d"] and total == 5
        assert [row.name[0] for row, _ in worklist.query_worklist(session, WorklistFilter(), 2, 1)[0]] == ["c", "a"]
        assert worklist.query_worklist(session, WorklistFilter(text="B_100%"), 10)[1] == 1
        assert worklist.query_worklist(session, WorklistFilter(text="b%"), 10)[1] == 0
        assert worklist.query_worklist(session, WorklistFilter(state="certain"), 10)[1] == 1
        assert worklist.query_worklist(session, WorklistFilter(quality="usable"), 10)[1] == 4
        assert worklist.query_worklist(session, WorklistFilter(uploader="nobody"), 10)[1] == 0
        assert worklist.count_states(session) == {
            "open": 3,
            "waiting": 1,
            "incomplete": 0,
            "confirmed": 0,
            "amended": 0,
            "certain": 1,
            "unreadable": 0,
        }


@pytest.fixture
def case_id(store):
    made = admit(store, single("a"))[0]
    classify(store)
    return made


def test_a_case_is_one_readers_until_the_claim_expires(store, clock, case_id):
    with store.write_session() as session:
        row = recordings.find_recording(session, case_id)
        reviews.claim_case(session, row, reviewer(store, "one"))
        reviews.claim_case(session, row, reviewer(store, "one"))
        with pytest.raises(ConflictError, match="claimed by one"):
            reviews.claim_case(session, row, reviewer(store, "two"))
        with pytest.raises(ConflictError, match="claimed"):
            judge(session, row, reviewer(store, "two"), "N")
        reviews.release_case(session, row, reviewer(store, "two"))
        assert reviews.claim_holder(row, store.now()) == "one"
    clock.passes(901)
    with store.write_session() as session:
        row = recordings.find_recording(session, case_id)
        with pytest.raises(ConflictError):
            judge(session, row, reviewer(store, "one"), "N")
        reviews.claim_case(session, row, reviewer(store, "two"))
        reviews.release_case(session, row, reviewer(store, "two"))
        reviews.claim_case(session, row, reviewer(store, "one"))


@pytest.mark.parametrize(("final", "state"), [("N", State.CONFIRMED), ("A", State.AMENDED)])
def test_the_answer_is_hidden_until_the_first_verdict_and_both_are_kept(store, case_id, final, state):
    with store.write_session() as session:
        row = recordings.find_recording(session, case_id)
        reviews.claim_case(session, row, reviewer(store))
        assert not reviews.may_see_answer(session, row, "reader", blind_first=True)
        assert reviews.may_see_answer(session, row, "reader", blind_first=False)
        with pytest.raises(UnprocessableError, match="'X' is not a class"):
            judge(session, row, reviewer(store), "X")
        assert judge(session, row, reviewer(store), "A") == "first"
        assert row.state == State.DEFERRED
        assert reviews.may_see_answer(session, row, "reader", blind_first=True)
        assert not reviews.may_see_answer(session, row, "another", blind_first=True)
        assert judge(session, row, reviewer(store), final) == "final"
        with pytest.raises(ConflictError, match="open"):
            judge(session, row, reviewer(store), final)
    assert state_of(store, case_id) == state
    with store.read_session() as session:
        kept = [(v.stage, v.label, v.was_blind) for v in reviews.list_verdicts(session, case_id)]
    assert kept == [("first", "A", True), ("final", final, False)]


def test_without_blindness_one_verdict_is_enough(store, case_id):
    with store.write_session() as session:
        row = recordings.find_recording(session, case_id)
        reviews.claim_case(session, row, reviewer(store, blind_first=False))
        assert judge(session, row, reviewer(store, blind_first=False), "N") == "final"
        assert [v.was_blind for v in reviews.list_verdicts(session, case_id)] == [False, False]


def test_tokens_are_kept_hashed_and_can_be_revoked(store, clock):
    with store.write_session() as session:
        token = tokens.add_token(session, store.now(), "Ada", "reader")
        secret = tokens.open_session(session, store.now(), store.after(100), token)
        assert tokens.open_session(session, store.now(), store.after(100), token + "x") is None
        for wrong in (("Ada", "reader"), ("", "reader"), ("Bob", "boss"), ("local", "admin")):
            with pytest.raises(DeskError):
                tokens.add_token(session, store.now(), *wrong)
    assert len(token) > 43
    with store.read_session() as session:
        stored = str(
            session.execute(text("SELECT * FROM tokens")).all() + session.execute(text("SELECT * FROM sessions")).all()
        )
        assert token not in stored and secret not in stored
        assert tokens.actor_of_token(session, store.now(), token).roles == {"reader"}
        assert tokens.actor_of_session(session, store.now(), "", secret).name == "Ada"
        assert (
            tokens.actor_of_token(session, store.now(), "") is tokens.actor_of_token(session, store.now(), "x") is None
        )
    clock.passes(101)
    with store.read_session() as session:
        assert tokens.actor_of_session(session, store.now(), "", secret) is None
    with store.write_session() as session:
        again = tokens.open_session(session, store.now(), store.after(100), token)
        tokens.revoke_token(session, store.now(), "Ada")
        assert tokens.actor_of_token(session, store.now(), token) is None
        assert tokens.actor_of_session(session, store.now(), "", again) is None
        with pytest.raises(DeskError, match="Nobody"):
            tokens.revoke_token(session, store.now(), "Nobody")


def test_nothing_of_a_failed_transaction_stays(store):
    with pytest.raises(RuntimeError), store.write_session() as session:
        recordings.add_file(session, store.now(), "u", single("a"))
        raise RuntimeError
    with store.read_session() as session:
        assert session.scalars(select(RecordingRow)).all() == []
        assert audit.head(session)[0] == 0


@pytest.mark.parametrize("url", ["nonsense", "mysql://x/y", "postgresql+psycopg://nobody@127.0.0.1:9/none"])
def test_a_database_that_cannot_be_opened_is_a_one_line_error(url):
    with pytest.raises(DeskError) as error:
        Store(url).migrate()
    assert "\n" not in str(error.value)
