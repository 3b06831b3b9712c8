"""Commands about cohorts: build, info, fetch."""

from pathlib import Path
from typing import Annotated

import typer

from ecgquorum.cli.application import cohort_app
from ecgquorum.cli.console import err, print_cohort, print_report
from ecgquorum.cli.console import out as stdout
from ecgquorum.progress import console_progress


@cohort_app.command("build")
def cohort_build(
    source: Annotated[
        str,
        typer.Argument(
            help="PhysioNet 2017 or CPSC 2018 (folder or zip), any folder or zip with a labels.csv, "
            "synthetic:physionet2017 or synthetic:cpsc2018."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The cohort's folder; must not exist yet.")],
    rate: Annotated[float | None, typer.Option(help="Resample to this rate in Hz.")] = None,
    leads: Annotated[str | None, typer.Option(help="Keep these leads, in this order: I,II,V1.")] = None,
    test_ids: Annotated[
        Path | None, typer.Option(help="Fix the test part: one id a line, or a permutation as .npy.")
    ] = None,
    tune_share: Annotated[float, typer.Option(help="Share of the recordings to tune on.")] = 0.1,
    test_share: Annotated[float, typer.Option(help="Share to test on, when no --test-ids are given.")] = 0.1,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    records: Annotated[int, typer.Option(help="How many to simulate (synthetic sources).", min=1)] = 1000,
    seconds: Annotated[float, typer.Option(help="Their length (synthetic sources).", min=1, max=86400)] = 30.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulation (synthetic sources).")] = 0,
) -> None:
    """Build a cohort: read every recording, leave out duplicates and what cannot serve, split in three, write.

    A labels.csv has the columns id (the recording's path in the folder), label (several separated by |) and, if
    known, patient: a patient's recordings always stay in one part.
    """
    from ecgquorum import build_cohort, open_source
    from ecgquorum.cohorts import SplitOptions

    opened = open_source(source, records=records, seconds=seconds, seed=seed)
    split = SplitOptions(test_ids, tune_share, test_share, split_seed)
    with console_progress("reading", err) as progress:
        cohort, report = build_cohort(
            opened,
            out,
            rate_hz=rate,
            leads=[name.strip() for name in leads.split(",")] if leads else None,
            split=split,
            progress=progress,
        )
    print_report(report)
    print_cohort(cohort)


@cohort_app.command("info")
def cohort_info(path: Annotated[Path, typer.Argument(help="The cohort's folder.")]) -> None:
    """Show a cohort: counts per class and part, lengths, rate, leads, units."""
    from ecgquorum import Cohort

    print_cohort(Cohort(path))


@cohort_app.command("fetch")
def cohort_fetch(
    name: Annotated[str, typer.Argument(help="physionet2017 or cpsc2018.")],
    out: Annotated[Path | None, typer.Option(help="Folder to download to. Default: data/NAME.")] = None,
    url: Annotated[str | None, typer.Option(help="A mirror with the same layout and a SHA256SUMS.txt.")] = None,
) -> None:
    """Download a data set from PhysioNet, checked against its SHA-256 sums; run again to go on where it stopped."""
    from ecgquorum import fetch

    with console_progress("files", err) as progress:
        folder = fetch(name, out or Path("data") / name, url=url, progress=progress)
    stdout.print(f"{name} is in {folder}; build a cohort with: ecgquorum cohort build {folder} --out DIR")
