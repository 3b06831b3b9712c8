"""The command that classifies recordings: predict."""

import json
from typing import Annotated

import typer

from ecgquorum.cli.application import (
    DEFAULT_MODEL,
    RECORDINGS,
    Files,
    Identify,
    Lead,
    Leads,
    Measure,
    MemberName,
    Model,
    Rate,
    Stride,
    Units,
    Window,
    app,
    file_defaults,
)
from ecgquorum.cli.console import print_answer, print_error


@app.command(rich_help_panel=RECORDINGS)
def predict(
    files: Files,
    model: Model = DEFAULT_MODEL,
    member: MemberName = None,
    lead: Lead = None,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    window: Window = None,
    stride: Stride = None,
    identify: Identify = False,
    measure: Measure = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array with one object per recording.")] = False,
) -> None:
    """Classify recordings: class, calibrated probabilities, each member's raw ones, risk and uncertainty.

    Files that cannot be read are reported on standard error and skipped; the exit code is then 1.
    """
    if _report_missing(files):
        if as_json:
            print("[]")
        raise typer.Exit(1)
    from ecgquorum import ReadFailure, ReadOptions, load_ensemble, predict_files
    from ecgquorum.preprocessing import Windowing
    from ecgquorum.preprocessing.measurements import require_package

    if measure:
        require_package()
    ensemble = load_ensemble(model, member=member)
    names: dict[str, str] = ensemble.card.get("class_names", {})
    failed = shown = 0
    options = ReadOptions(lead=lead, defaults=file_defaults(rate, leads, units), identify=identify, measure=measure)
    for answer in predict_files(ensemble, files, options, windowing=Windowing(window, stride)):
        if isinstance(answer, ReadFailure):
            failed += 1
            print_error(answer.reason)
        elif as_json:
            print(
                "[" if shown == 0 else ",", json.dumps(answer.to_json(), ensure_ascii=False), sep="\n" if shown else ""
            )
            shown += 1
        else:
            print_answer(answer, names)
            shown += 1
    if as_json:
        print("]" if shown else "[]")
    if failed:
        raise typer.Exit(1)


def _report_missing(files: list[str]) -> bool:
    """Whether none of the files is there, which is then reported; found before the seconds that PyTorch takes."""
    from ecgquorum.recordings.discovery import ReadFailure, discover_recordings

    failures = []
    for found in discover_recordings(files):
        if not isinstance(found, ReadFailure):
            return False
        failures.append(found)
    for failure in failures:
        print_error(failure.reason)
    return True
