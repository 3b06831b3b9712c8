"""Agreement of readers with each other: Cohen's and Fleiss' kappa, and statistics of each reader.

Only cases that two have read, blind to each other, count; the third reader of a disagreement is not one of them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from pydantic import BaseModel
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from ecgquorum.service.proportions import Proportion, proportion
from ecgquorum.service.store.reviews import FINAL, FIRST
from ecgquorum.service.store.tables import CLOSED, RecordingRow, VerdictRow
from ecgquorum.service.views import seconds_between


class ReaderPair(BaseModel):
    """Agreement of two readers on the cases that both have read; `kappa`: Cohen's, None where it is undefined."""

    first: str
    second: str
    agreement: Proportion
    kappa: float | None


class ReaderStatistics(BaseModel):
    """Of one reader: cases read, median seconds between first and final verdict, changed verdicts, other answers."""

    reader: str
    n_read: int
    median_s: float | None
    changed: Proportion
    not_one_class: int


class Readers(BaseModel):
    """Agreement between readers.

    agreement: of both verdicts on cases read by two · kappa: Fleiss' over all readers · by_class: Fleiss' of each class
    """

    n_double: int
    n_adjudicated: int
    agreement: Proportion
    kappa: float | None
    by_class: dict[str, float | None]
    pairs: list[ReaderPair]
    each: list[ReaderStatistics]


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """(p_o - p_e) / (1 - p_e); p_e from the two readers' own frequencies. None without pairs, or if p_e is 1."""
    n = len(pairs)
    if n == 0:
        return None
    observed = sum(a == b for a, b in pairs) / n
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    expected = sum(left[label] * right[label] for label in left) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def fleiss_kappa(ratings: Sequence[Sequence[str]]) -> float | None:
    """Fleiss' kappa of cases that were each read by the same number of readers, at least two."""
    if not ratings:
        return None
    n_raters = len(ratings[0])
    shares: Counter[str] = Counter(label for case in ratings for label in case)
    total = len(ratings) * n_raters
    expected = sum((count / total) ** 2 for count in shares.values())
    observed = sum(
        sum(count * (count - 1) for count in Counter(case).values()) / (n_raters * (n_raters - 1)) for case in ratings
    ) / len(ratings)
    return None if expected == 1 else (observed - expected) / (1 - expected)


def measure_readers(session: Session, classes: Iterable[str]) -> Readers:
    """Agreement between readers, and statistics of each, over all closed cases."""
    cases = _finals_by_case(session)
    double = [finals[:2] for finals in cases if len(finals) > 1]
    ratings = [[label for _, label in two] for two in double]
    known = dict.fromkeys(classes)
    return Readers(
        n_double=len(double),
        n_adjudicated=sum(len(finals) > 2 for finals in cases),
        agreement=proportion(sum(a == b for a, b in ratings), len(ratings)),
        kappa=fleiss_kappa(ratings),
        by_class={name: fleiss_kappa([_is_or_not(name, two) for two in ratings]) for name in known},
        pairs=_pairs(double),
        each=_statistics(session),
    )


def _is_or_not(name: str, labels: Sequence[str]) -> list[str]:
    return ["yes" if label == name else "no" for label in labels]


def _finals_by_case(session: Session) -> list[list[tuple[str, str]]]:
    """Reader and answer of the final verdicts of each closed case, in the order in which they were given."""
    found: dict[str, list[tuple[str, str]]] = {}
    query = (
        select(VerdictRow.recording_id, VerdictRow.reader, VerdictRow.label)
        .join(RecordingRow, RecordingRow.id == VerdictRow.recording_id)
        .where(VerdictRow.stage == FINAL, VerdictRow.round == RecordingRow.round, RecordingRow.state.in_(CLOSED))
        .order_by(VerdictRow.id)
    )
    for recording_id, reader, label in session.execute(query):
        found.setdefault(recording_id, []).append((reader, label))
    return list(found.values())


def _pairs(double: Sequence[Sequence[tuple[str, str]]]) -> list[ReaderPair]:
    answers: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for two in double:
        (first, a), (second, b) = sorted(two)
        answers.setdefault((first, second), []).append((a, b))
    return [
        ReaderPair(
            first=first,
            second=second,
            agreement=proportion(sum(a == b for a, b in labels), len(labels)),
            kappa=cohen_kappa(labels),
        )
        for (first, second), labels in sorted(answers.items())
    ]


def _statistics(session: Session) -> list[ReaderStatistics]:
    stages: dict[tuple[str, str, int], dict[str, tuple[str, str, str]]] = {}
    columns = VerdictRow.recording_id, VerdictRow.reader, VerdictRow.round, VerdictRow.stage
    query = select(*columns, VerdictRow.label, VerdictRow.kind, VerdictRow.at).join(
        RecordingRow, RecordingRow.id == VerdictRow.recording_id
    )
    is_over = or_(RecordingRow.state.in_(CLOSED), VerdictRow.round < RecordingRow.round)
    for recording_id, reader, number, stage, label, kind, at in session.execute(query.where(is_over)):
        stages.setdefault((reader, recording_id, number), {})[stage] = label, kind, at
    by_reader: dict[str, list[dict[str, tuple[str, str, str]]]] = {}
    for (reader, _, _), both in sorted(stages.items()):
        if FINAL in both and FIRST in both:
            by_reader.setdefault(reader, []).append(both)
    return [
        ReaderStatistics(
            reader=reader,
            n_read=len(read),
            median_s=median(seconds_between(both[FIRST][2], both[FINAL][2]) for both in read),
            changed=proportion(sum(both[FIRST][0] != both[FINAL][0] for both in read), len(read)),
            not_one_class=sum(both[FINAL][1] != "class" for both in read),
        )
        for reader, read in by_reader.items()
    ]
