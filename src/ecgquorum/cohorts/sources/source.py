"""What a cohort is built from, whatever its layout."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ecgquorum.errors import CohortError
from ecgquorum.recordings import Recording, RecordingPath


@dataclass(frozen=True)
class SourceRecord:
    """One labelled recording: a file, or a simulation.

    labels:   names of classes, or codes that `Source.class_of_code` translates; None: those that the file states
    simulate: makes the recording, where there is no file
    """

    path: RecordingPath | None = None
    labels: tuple[str, ...] | None = None
    patient: str | None = None
    simulate: Callable[[], Recording] | None = None


@dataclass(frozen=True)
class Source:
    """Labelled recordings of one data set.

    records:       by id
    classes:       in the order of the outputs of networks
    leads:         of the cohort; None: the leads of the first recording
    rate_hz:       of the cohort; None: the rate of the first recording
    class_of_code: class of each diagnosis code in the files
    notices:       what a user should know about how this source was read
    """

    name: str
    classes: tuple[str, ...]
    class_names: Mapping[str, str]
    records: Mapping[str, SourceRecord]
    leads: tuple[str, ...] | None = None
    rate_hz: float | None = None
    class_of_code: Mapping[str, str] | None = None
    notices: tuple[str, ...] = ()


def join_sources(sources: Sequence[Source]) -> Source:
    """Return several parts of one data set as one source; raise if they differ, or share an id."""
    first, *others = sources
    records = dict(first.records)
    for other in others:
        for name in ("name", "classes", "leads", "rate_hz", "class_of_code"):
            if getattr(other, name) != getattr(first, name):
                raise CohortError(
                    f"several sources must be parts of one data set: expected {name} {getattr(first, name)} as in the "
                    f"first one, found {getattr(other, name)}; build a cohort of each"
                )
        twice = sorted(records.keys() & other.records.keys())
        if twice:
            raise CohortError(f"two sources have a recording {twice[0]} ({len(twice)} in all); leave one of them out")
        records |= other.records
    if others:  # in an order that does not depend on that of the sources: a permutation of test ids counts in it
        records = dict(sorted(records.items()))
    return replace(first, records=records, notices=tuple(notice for one in sources for notice in one.notices))


def names_by_id(names: Iterable[str]) -> dict[str, str]:
    """id -> file: the id is the file's name without its suffix, or its path where two files share a name."""
    names = list(names)
    times = Counter(PurePosixPath(name).stem for name in names)
    return {
        PurePosixPath(name).stem if times[PurePosixPath(name).stem] == 1 else name.rsplit(".", 1)[0]: name
        for name in names
    }
