"""The application that commands belong to, the options that they share, and how errors are printed."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ecgquorum.cli.config import CONFIG, read_config
from ecgquorum.cli.console import err, print_line
from ecgquorum.cli.interrupts import repeat_lost_interrupts
from ecgquorum.errors import DrawingError, EcgQuorumError, OutputError, PolicyError
from ecgquorum.recipes import recipe_names

if TYPE_CHECKING:
    from ecgquorum.recordings import FileDefaults

RECORDINGS, ENSEMBLES, DATA, DESK = "Recordings", "Ensembles", "Data and training", "Review desk"
"""The panels of `ecgquorum --help`."""


class Group(TyperGroup):
    """Commands whose flags are shown without a type: --version, not --version <bool>."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _hide_flag_types(command.get_params(ctx))
        return command

    def get_params(self, ctx: Any) -> Any:
        """The group's own options."""
        params = super().get_params(ctx)
        _hide_flag_types(params)
        return params


def _hide_flag_types(params: list[Any]) -> None:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""


app = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")

Files = Annotated[
    list[str],
    typer.Argument(
        help="Recordings, folders or zip archives of them; ARCHIVE.zip/NAME is one recording of an archive, "
        "sample:af and sample:lbbb are simulated recordings that ship."
    ),
]
File = Annotated[
    str, typer.Argument(help="A recording; ARCHIVE.zip/NAME is one of an archive, sample:af is one that ships.")
]
Rate = Annotated[float | None, typer.Option(min=1, help="Sampling rate in Hz, for files that do not state it.")]
Leads = Annotated[
    str | None, typer.Option(help="Names of the leads in order, for files that do not state them: I,II,V1.")
]
Units = Annotated[
    str | None, typer.Option(help="mV, uV or V, for files that do not state their unit or state a wrong one.")
]
Lead = Annotated[
    str | None, typer.Option(help="Which of the recording's leads to classify, for a model of one lead: II.")
]
Window = Annotated[
    float | None,
    typer.Option(help="Length of the windows that long recordings are classified in, in s. Default: the model's."),
]
Stride = Annotated[
    float | None, typer.Option(help="From one window to the next, in s. Default: the fewest windows that cover all.")
]
Identify = Annotated[
    bool, typer.Option("--identify", help="Show patient, time and device, where the file states them.")
]
Measure = Annotated[
    bool, typer.Option("--measure", help="Also measure PR, QRS, QT and QTc, with the package neurokit2.")
]
Model = Annotated[
    str, typer.Option(help="A bundle's folder (written by `train`), or one that ships: for 12 leads cpsc2018.")
]
MemberName = Annotated[
    str | None,
    typer.Option("--member", help="The bundle's networks if they are not built in: a name, or package.module:Name."),
]
Bundle = Annotated[str, typer.Argument(help="A bundle's folder (written by `train`), or the name of one that ships.")]
RecipeName = Annotated[
    str, typer.Argument(help="A recipe's TOML file, or the name of one that ships.", autocompletion=recipe_names)
]
CohortFolder = Annotated[
    str, typer.Option(help="The cohort's folder, written by `ecgquorum cohort build`, or its URL: s3://bucket/cohort.")
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]


def check_folder(path: Path | None) -> Path | None:
    """Refuse a folder to write to whose path is a file, or goes through one, before any work is done."""
    found = next((one for one in (path, *path.parents) if one.exists()), None) if path else None
    if found is not None and not found.is_dir():
        what = "this is" if found == path else f"{found} is"
        raise OutputError(f"{path}: expected a folder, but {what} a file; name another folder, or remove the file")
    return path


def check_place(place: str) -> str:
    """Refuse a folder to write to as `check_folder` does, or a URL that cannot be one."""
    from ecgquorum.storage import parse_location

    location = parse_location(place)
    if isinstance(location, Path):
        check_folder(location)
    return place


def folder_option(text: str) -> Any:
    """The option of a folder to write to, with its help."""
    return typer.Option(help=text, callback=check_folder)


INTERRUPTED = 130
DEFAULT_MODEL = "physionet2017"


def main() -> None:
    """Run the command line. A foreseen error is printed as one line; with --debug its traceback is shown."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        with repeat_lost_interrupts():
            app()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (EcgQuorumError, OSError, MemoryError) as error:
        if debug:
            raise
        if _is_first_to_fail():
            err.print(f"error: {_message(error)}", style="red", markup=False)
        sys.exit(1)


def _is_first_to_fail() -> bool:
    """Whether no other rank has printed the error; without ranks there is no other, and no need to load PyTorch."""
    ranks = sys.modules.get("ecgquorum.parallel.distributed")
    return ranks is None or ranks.is_first_to_fail()


def _message(error: BaseException) -> str:
    if isinstance(error, OSError):
        in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
        why = "a file is where a folder is expected; choose another path, or remove the file" if in_the_way else ""
        return f"{error.filename or 'the system'}: {why or error.strerror or error}"
    if isinstance(error, MemoryError):
        return "out of memory; try fewer or shorter recordings, or fewer workers"
    return str(error)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"ecgquorum {version('ecgquorum')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help=f"A TOML file with options, a table for each command. Default: {CONFIG}, if it is here."),
    ] = None,
    show_version: Annotated[  # noqa: ARG001 (its callback prints)
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[  # noqa: ARG001 (`main` reads it)
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Small ensembles of ECG classifiers whose disagreement and confidence tell when not to trust them.

    Research use only. Try it with a simulated recording that ships: ecgquorum predict sample:af
    """
    context.default_map = read_config(config, context.command)


def file_defaults(rate: float | None, leads: str | None, units: str | None) -> "FileDefaults":
    """What the options --rate, --leads and --units say about files that do not say it themselves."""
    from ecgquorum.recordings import FileDefaults

    return FileDefaults(rate, split_names(leads) if leads else None, units)


def split_names(text: str) -> tuple[str, ...]:
    """The parts of a list separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_share(option: str, text: str | None) -> float | None:
    """A share from 0 to 1, written 10% or 0.1."""
    if text is None:
        return None
    share = parse_number(option, text)
    if not 0 <= share <= 1:
        raise PolicyError(f"{option}: expected a share such as 10%, found {text!r}")
    return share


def parse_number(option: str, text: str) -> float:
    """A number, written 0.1 or 10%."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise PolicyError(f"{option}: expected a number such as 0.1 or 10%, found {text!r}") from None


def check_new(path: Path, force: bool) -> None:
    """Refuse to replace a file that exists, unless forced to."""
    if path.exists() and not force:
        raise DrawingError(f"{path}: the file exists already; choose another name or overwrite it (--force)")
