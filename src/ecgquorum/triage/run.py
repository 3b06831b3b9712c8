"""Triage of any number of files: read apart, classify, decide, write a worklist; may be killed and gone on with.

DIR/journal.sqlite  every answer so far, which a later call goes on from
DIR/worklist.csv    what goes to people first, the most uncertain at the top; then what is certain
DIR/worklist.jsonl  the same with every probability
DIR/worklist.html   the same to look at
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.errors import RecordingError, TriageError
from ecgquorum.recordings.filetree import Folder, open_tree
from ecgquorum.recordings.quality import Severity
from ecgquorum.recordings.reading import files_of, recording_names
from ecgquorum.triage.apart import Fitted, Outcome, Place, Unread, Wanted, read_apart
from ecgquorum.triage.journal import Journal, Row
from ecgquorum.triage.policies import Policy

CERTAIN, DEFERRED, UNREADABLE = "certain", "deferred", "unreadable"
_GROUP = 32
_DIGITS = 6
_SETTLED_S, _GIVEN_UP_S = 2.0, 60.0
Told = Callable[[int, int], None]
"""How many recordings are behind us, and of how many."""


def places_in(paths: Iterable[str | Path]) -> Iterator[Place | Unread]:
    """Every recording that the paths name: files, folders, archives; what is not there is told in its place."""
    for path in map(Path, paths):
        try:
            if path.is_dir() or path.suffix.lower() == ".zip":
                tree = open_tree(path)
                names = recording_names(tree)
                yield from (Place(str(path), name) for name in names)
            elif path.is_file() or Folder(path.parent).size(f"{path.name}.hea") is not None:
                name = path.name if path.is_file() else f"{path.name}.hea"
                yield Place(str(path.parent), _header_of(path.parent, name))
            else:
                raise RecordingError(f"{path}: expected a recording, a folder or an archive, found nothing")
        except RecordingError as error:
            yield Unread(Place(str(path.parent), path.name), str(error))


def _header_of(folder: Path, name: str) -> str:
    """The header of a signal file that has one."""
    stem, _, ending = name.rpartition(".")
    header = f"{stem}.hea"
    return header if ending in ("dat", "mat") and (folder / header).is_file() else name


def triage_files(
    ensemble: Ensemble,
    policy: Policy | None,
    paths: Iterable[str | Path],
    out: str | Path,
    *,
    wanted: Wanted | None = None,
    n_readers: int = 2,
    told: Told | None = None,
    only_settled: bool = False,
) -> Journal:
    """Answer every recording that is not answered yet; gives the journal, from which the worklist is written.

    policy:       which of them go to people; None: only those of doubtful quality, until the worklist rations them
    only_settled: leave alone what may still be on its way: files changed a moment ago, headers without their signal
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise TriageError(f"{out}: expected a folder, found a file")
    wanted = wanted or Wanted(ensemble.spec)
    about = {
        "model": ensemble.card.get("weights_sha256", ""),
        "policy": policy.card() if policy else None,
        "lead": wanted.lead,
        "hints": [wanted.hints.rate_hz, list(wanted.hints.leads or ()), wanted.hints.units],
    }
    journal = Journal(out / "journal.sqlite", about)
    done = len(journal)
    waiting = [place for place in places_in(paths) if str(_place(place)) not in journal]
    if only_settled:
        waiting = [place for place in waiting if isinstance(place, Place) and _is_settled(place)]
    lost = [place for place in waiting if isinstance(place, Unread)]
    there = [place for place in waiting if isinstance(place, Place)]
    total = done + len(waiting)
    outcomes = _chained(lost, read_apart(there, wanted, n_readers=n_readers) if there else iter(()))
    while group := list(islice(outcomes, _GROUP)):
        journal.add(answered(ensemble, policy, group))
        done += len(group)
        if told:
            told(done, total)
    return journal


def _is_settled(place: Place) -> bool:
    """Whether all of its files are there and have not changed for a moment; some may be missing for good."""
    folder = Path(place.tree)
    if not folder.is_dir():
        return True
    try:
        names = files_of(Folder(folder), place.name)
    except RecordingError:
        names = [place.name]
    changed = [(folder / name).stat().st_mtime for name in names if (folder / name).is_file()]
    age_s = time.time() - max(changed, default=0.0)
    return age_s > (_SETTLED_S if len(changed) == len(names) else _GIVEN_UP_S)


def _place(found: Place | Unread) -> Place:
    return found if isinstance(found, Place) else found.place


def _chained(lost: Sequence[Unread], read: Iterator[Outcome]) -> Iterator[Outcome]:
    yield from lost
    yield from read


def answered(ensemble: Ensemble, policy: Policy | None, group: Sequence[Outcome]) -> list[Row]:
    """A line for each recording of the group: what the ensemble says, and whether a person is to read it."""
    fitted = [one for one in group if isinstance(one, Fitted)]
    prediction = ensemble.predict_fitted([one.id for one in fitted], [one.signal for one in fitted])
    reasons = [""] * len(fitted)
    if policy:
        reasons = [policy.reason(prediction, i) if d else "" for i, d in enumerate(policy.deferred(prediction))]
    model = ensemble.card.get("weights_sha256", "")
    rows = iter([_row(one, prediction, i, reasons[i], model) for i, one in enumerate(fitted)])
    return [next(rows) if isinstance(one, Fitted) else _unread_row(one, model) for one in group]


def _row(one: Fitted, prediction: Prediction, place: int, doubt: str, model: str) -> Row:
    """doubt: why the policy defers it, if it does"""
    label = int(prediction.label_index[place])
    severity = one.quality.severity
    if severity is Severity.UNREADABLE:
        decision, reason = UNREADABLE, one.quality.reasons[0]
    elif severity is Severity.DOUBTFUL:
        decision, reason = DEFERRED, one.quality.reasons[0]
    else:
        decision, reason = DEFERRED if doubt else CERTAIN, doubt
    votes = prediction.member_probs[place].argmax(axis=1)
    return {
        "id": one.id,
        "source": str(one.place),
        "class": prediction.classes[label],
        "decision": decision,
        "reason": reason,
        "uncertainty": round(float(prediction.uncertainty[place]), _DIGITS),
        "probability": round(float(prediction.probs[place, label]), _DIGITS),
        "calibrated_probability": round(float(prediction.calibrated[place, label]), _DIGITS),
        "probabilities": _by_class(prediction, prediction.probs[place]),
        "member_probabilities": [_by_class(prediction, probs) for probs in prediction.member_probs[place]],
        "votes": [prediction.classes[vote] for vote in votes],
        "quality": str(severity),
        "quality_reasons": list(one.quality.reasons),
        "seconds": round(one.seconds, 3),
        "sha256": one.sha256,
        "model_sha256": model,
        "trace": one.trace,
        "trace_s": round(one.trace_s, 4),
    }


def _by_class(prediction: Prediction, probs: Any) -> dict[str, float]:
    return {name: round(float(p), _DIGITS) for name, p in zip(prediction.classes, probs, strict=True)}


def _unread_row(one: Unread, model: str) -> Row:
    return {
        "id": Path(one.place.name).stem,
        "source": str(one.place),
        "class": "",
        "decision": UNREADABLE,
        "reason": one.reason,
        "uncertainty": None,
        "probability": None,
        "calibrated_probability": None,
        "probabilities": {},
        "member_probabilities": [],
        "votes": [],
        "quality": str(Severity.UNREADABLE),
        "quality_reasons": [],
        "seconds": None,
        "sha256": one.sha256,
        "model_sha256": model,
        "trace": [],
        "trace_s": 0.0,
    }
