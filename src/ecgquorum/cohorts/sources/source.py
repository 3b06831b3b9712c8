"""What a cohort can be built from, whatever its layout."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ecgquorum.recordings import Recording


@dataclass(frozen=True)
class Source:
    """Labelled recordings that can be loaded one at a time.

    load:       id -> a function that reads it; the recording's labels are already names of classes
    classes:    in the order that networks will know them by
    leads:      what the cohort will hold; None: the leads of the first recording
    rate_hz:    what the cohort will be sampled at; None: the rate of the first recording
    notices:    what a user should know about how this source was read
    """

    name: str
    classes: tuple[str, ...]
    class_names: Mapping[str, str]
    load: Mapping[str, Callable[[], Recording]]
    leads: tuple[str, ...] | None = None
    rate_hz: float | None = None
    notices: tuple[str, ...] = ()


def names_by_id(names: Iterable[str]) -> dict[str, str]:
    """id -> file: the id is the file's name without its ending, or its path where two files share a name."""
    names = list(names)
    times = Counter(PurePosixPath(name).stem for name in names)
    return {
        PurePosixPath(name).stem if times[PurePosixPath(name).stem] == 1 else name.rsplit(".", 1)[0]: name
        for name in names
    }
