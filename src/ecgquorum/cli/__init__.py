"""The command line: every command is one library call and the printing of what it gives."""

from ecgquorum.cli import bundles, cohorts, desk, plot, training, triage, tuning  # noqa: F401 (each adds its commands)
from ecgquorum.cli.application import DEFAULT_MODEL, app, main

__all__ = ["DEFAULT_MODEL", "app", "main"]
