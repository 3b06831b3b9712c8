"""Commands that write recordings: simulate, convert."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import (
    RECORDINGS,
    File,
    Force,
    Leads,
    Rate,
    Units,
    app,
    file_defaults,
    split_names,
)
from ecgquorum.cli.console import print_line, print_warning

if TYPE_CHECKING:
    from ecgquorum.recordings import Recording

_LABELS = (
    "N normal, A atrial fibrillation, O other rhythm, ~ noise (PhysioNet 2017); Normal, AF atrial fibrillation, "
    "I-AVB first-degree block, LBBB and RBBB bundle branch blocks, PAC and PVC premature beats, STD and STE "
    "ST depression and elevation (CPSC 2018)"
)


@app.command(rich_help_panel=RECORDINGS)
def simulate(
    label: Annotated[str, typer.Argument(help=f"The class to simulate. {_LABELS}.")],
    out: Annotated[Path, typer.Option(help="The file to write: .hea (WFDB), .edf, .csv or .npz.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same recording.")] = 0,
    seconds: Annotated[float, typer.Option(min=1, max=86400, help="Length in seconds.")] = 30.0,
    rate: Annotated[float, typer.Option(min=50, max=2000, help="Sampling rate in Hz.")] = 300.0,
    leads: Annotated[
        str | None, typer.Option(help="Leads, separated by commas: I,II,V1; ECG is one unnamed lead. Default: all 12.")
    ] = None,
    noise: Annotated[
        float, typer.Option(min=0, max=20, help="Noise as a multiple of the usual amount; 0 gives a clean signal.")
    ] = 1.0,
    force: Force = False,
) -> None:
    """Simulate a recording of a class, with the noise that electrodes pick up, and write it to a file."""
    from ecgquorum import simulate as simulate_recording
    from ecgquorum import write
    from ecgquorum.recordings import STANDARD_LEADS

    names = split_names(leads) if leads else STANDARD_LEADS
    recording = simulate_recording(label, seed=seed, seconds=seconds, rate_hz=rate, leads=names, noise=noise).recording
    write(recording, out, overwrite=force)
    print_output_path(recording, out)


@app.command(rich_help_panel=RECORDINGS)
def convert(
    source: File,
    target: Annotated[Path, typer.Argument(help="The file to write: .hea (WFDB), .edf, .csv or .npz.")],
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    force: Force = False,
) -> None:
    """Write a recording in another format, in millivolts, with standard lead names.

    A stated unit that is implausible is kept and reported, unless --units gives another one.
    """
    from ecgquorum import read, write
    from ecgquorum.recordings.unit_correction import correct_units

    recording = read(source, file_defaults(rate, leads, units), as_stated=units is None, sandbox=True)
    correction = recording.correction or correct_units(recording, units).correction
    write(recording, target, overwrite=force)
    if correction:
        kept = "" if units else f"; written as stated, give --units {correction.used} to correct it"
        print_warning(f"{source}: wrong units: {correction}{kept}")
    print_output_path(recording, target)


def print_output_path(recording: "Recording", path: Path) -> None:
    """Print the leads, length and rate of a recording that was written."""
    print_line(f"{path}: {', '.join(recording.leads)}, {recording.seconds:.1f} s at {recording.rate_hz:g} Hz")
