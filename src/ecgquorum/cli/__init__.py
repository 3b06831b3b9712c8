"""The command line: each command calls the library and prints the result."""

# Commands are listed by `ecgquorum --help` in this order.
# isort: off
from ecgquorum.cli.application import DEFAULT_MODEL, app, main
from ecgquorum.cli import predict, triage, plot, recordings, policies, corruptions  # noqa: F401
from ecgquorum.cli import bundles, evaluation, cohorts, training, tuning, desk, retraining  # noqa: F401
# isort: on

__all__ = ["DEFAULT_MODEL", "app", "main"]
