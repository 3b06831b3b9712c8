"""The command line: each command calls the library and prints the result."""

from ecgquorum.cli import (  # noqa: F401 (each adds its commands, in the order of `ecgquorum --help`)
    bundles,
    cohorts,
    desk,
    evaluation,
    plot,
    predict,
    recordings,
    training,
    triage,
    tuning,
)  # isort: skip
from ecgquorum.cli.application import DEFAULT_MODEL, app, main

__all__ = ["DEFAULT_MODEL", "app", "main"]
