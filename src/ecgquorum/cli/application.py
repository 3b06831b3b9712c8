"""The application that commands belong to, the options that they share, and how errors are told."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.console import err
from ecgquorum.cli.console import out as stdout
from ecgquorum.errors import EcgQuorumError, PolicyError
from ecgquorum.recipes import recipe_names

if TYPE_CHECKING:
    from ecgquorum.recordings import FileDefaults

app = typer.Typer(
    help="Small ensembles of ECG classifiers whose disagreement tells when not to trust them. Research use only.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
cohort_app = typer.Typer(help="Labelled recordings: build, inspect and fetch cohorts.", no_args_is_help=True)
app.add_typer(cohort_app, name="cohort")
policy_app = typer.Typer(help="When recordings go to people: fit and show policies.", no_args_is_help=True)
app.add_typer(policy_app, name="policy")

Rate = Annotated[float | None, typer.Option(min=1, help="Sampling rate in Hz, for files that do not say it.")]
Leads = Annotated[
    str | None, typer.Option(help="Names of the leads in order, for files that do not say them: I,II,V1.")
]
Units = Annotated[str | None, typer.Option(help="mV, uV or V, for files that do not say it or cannot mean it.")]

RecipeName = Annotated[
    str, typer.Argument(help="A recipe's TOML file, or the name of one that ships.", autocompletion=recipe_names)
]
CohortFolder = Annotated[Path, typer.Option(help="The cohort's folder, from `ecgquorum cohort build`.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]

INTERRUPTED = 130
DEFAULT_MODEL = "physionet2017-compact"


def main() -> None:
    """Run the command line; an error that we foresaw is one line, its traceback shown only with --debug."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (EcgQuorumError, OSError, MemoryError) as error:
        if debug:
            raise
        if _is_first_to_fail():
            err.print(f"error: {_told(error)}", style="red", markup=False)
        sys.exit(1)


def _is_first_to_fail() -> bool:
    """Whether no other rank has told what is wrong; without ranks there is no other, and no need to load PyTorch."""
    ranks = sys.modules.get("ecgquorum.parallel.distributed")
    return ranks is None or ranks.is_first_to_fail()


def _told(error: BaseException) -> str:
    """One line: what was expected, what was found, what to do."""
    if isinstance(error, OSError):
        return f"{error.filename or 'the system'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; try less at once"
    return str(error)


def _print_version(wanted: bool) -> None:
    if wanted:
        stdout.print(f"ecgquorum {version('ecgquorum')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Small ensembles of ECG classifiers whose disagreement tells when not to trust them. Research use only."""


def hints_from(rate: float | None, leads: str | None, units: str | None) -> "FileDefaults":
    from ecgquorum.recordings import FileDefaults

    return FileDefaults(rate, listed(leads) if leads else None, units)


def listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def share_from(option: str, text: str | None) -> float | None:
    """10%, or 0.1."""
    if text is None:
        return None
    share = number_from(option, text)
    if not 0 <= share <= 1:
        raise PolicyError(f"{option}: expected a share such as 10%, found {text!r}")
    return share


def number_from(option: str, text: str) -> float:
    """10%, or 0.1."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise PolicyError(f"{option}: expected a number such as 0.1 or 10%, found {text!r}") from None
