"""Commands for cohorts: build, info, fetch."""

from pathlib import Path
from typing import Annotated

import typer

from ecgquorum.cli.application import DATA, Group, app, folder_option, split_names
from ecgquorum.cli.console import err, print_build_report, print_cohort, print_line
from ecgquorum.progress import console_progress

cohort_app = typer.Typer(
    cls=Group, help="Cohorts of labelled recordings: build, inspect and fetch them.", no_args_is_help=True
)
app.add_typer(cohort_app, name="cohort", rich_help_panel=DATA)


@cohort_app.command("build")
def cohort_build(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="PhysioNet 2017 or CPSC 2018 (folder or zip), any folder or zip with a labels.csv, "
            "synthetic:physionet2017 or synthetic:cpsc2018; several folders or zips of one data set are joined."
        ),
    ],
    out: Annotated[Path, folder_option("The cohort's folder; must not exist yet.")],
    rate: Annotated[float | None, typer.Option(help="Resample to this rate in Hz. Default: the source's rate.")] = None,
    leads: Annotated[str | None, typer.Option(help="Keep these leads, in this order: I,II,V1. Default: all.")] = None,
    test_ids: Annotated[
        Path | None, typer.Option(help="The test part: a file with one id per line, or a permutation as .npy.")
    ] = None,
    tune_share: Annotated[float, typer.Option(help="Share of recordings in the tune part, 0 to 1.")] = 0.1,
    test_share: Annotated[
        float, typer.Option(help="Share of recordings in the test part, 0 to 1, without --test-ids.")
    ] = 0.1,
    split_seed: Annotated[int, typer.Option(help="Seed of the random split.")] = 0,
    records: Annotated[int, typer.Option(help="How many recordings to simulate (synthetic sources).", min=1)] = 1000,
    seconds: Annotated[
        float, typer.Option(help="Length of each simulated recording in seconds (synthetic sources).", min=1, max=86400)
    ] = 30.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulation (synthetic sources).")] = 0,
) -> None:
    """Build a cohort: read every recording, leave out duplicates and unusable ones, split in train, tune and test.

    A labels.csv has the columns id (the recording's path in the folder), label (several separated by |) and, if
    known, patient: a patient's recordings always stay in one part.
    """
    from ecgquorum import SplitOptions, build_cohort, open_source

    opened = open_source(*sources, records=records, seconds=seconds, seed=seed)
    split = SplitOptions(test_ids, tune_share, test_share, split_seed)
    with console_progress("reading", err) as progress:
        cohort, report = build_cohort(
            opened,
            out,
            rate_hz=rate,
            leads=split_names(leads) if leads else None,
            split=split,
            progress=progress,
        )
    print_build_report(report)
    print_cohort(cohort)


@cohort_app.command("info")
def cohort_info(path: Annotated[str, typer.Argument(help="The cohort's folder or URL.")]) -> None:
    """Show a cohort: counts per class and part, lengths in seconds, rate in Hz, leads, units."""
    from ecgquorum import Cohort

    print_cohort(Cohort(path))


@cohort_app.command("fetch")
def cohort_fetch(
    name: Annotated[str, typer.Argument(help="physionet2017, cpsc2018 or nstdb, the recorded noise for corruptions.")],
    out: Annotated[Path | None, folder_option("Folder to download to. Default: data/NAME.")] = None,
    url: Annotated[
        str | None, typer.Option(help="A mirror with the same layout and a SHA256SUMS.txt. Default: physionet.org.")
    ] = None,
) -> None:
    """Download a data set from PhysioNet and check its SHA-256 sums; run it again to resume."""
    from ecgquorum import fetch

    with console_progress("files", err) as progress:
        folder = fetch(name, out or Path("data") / name, url=url, progress=progress)
    use = (
        f"name it in ECGQUORUM_NSTDB={folder} to use: ecgquorum corrupt IN OUT --kind muscle-nstdb"
        if name == "nstdb"
        else f"build a cohort with: ecgquorum cohort build {folder} --out DIR"
    )
    print_line(f"{name} is in {folder}; {use}")
