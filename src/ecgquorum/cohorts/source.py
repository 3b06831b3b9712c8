"""What a cohort can be built from, whatever its layout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
