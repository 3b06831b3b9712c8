"""Simulated recordings that ship with the package, named `sample:NAME` wherever a path is expected."""

from importlib.resources import files
from pathlib import Path

from ecgquorum.errors import RecordingError

PREFIX = "sample:"


def sample_names() -> list[str]:
    """The names of the recordings that ship: `af` (one lead, 30 s) and `lbbb` (twelve leads, 10 s)."""
    return sorted(path.stem for path in _folder().glob("*.hea"))


def resolve_sample(path: str | Path) -> Path:
    """The file that `sample:NAME` stands for; any other path as it is."""
    name = str(path)
    if not name.startswith(PREFIX) or Path(path).exists():
        return Path(path)
    name = name.removeprefix(PREFIX)
    if name not in sample_names():
        known = ", ".join(PREFIX + each for each in sample_names())
        raise RecordingError(f"{path}: no such sample; the samples are {known}")
    return _folder() / f"{name}.hea"


def _folder() -> Path:
    return Path(str(files("ecgquorum"))) / "samples"
