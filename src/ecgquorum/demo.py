"""The whole path in a minute or two, on simulated recordings: cohort, training, test, report."""

import shutil
from pathlib import Path

from ecgquorum.atomic import write_atomically
from ecgquorum.cohorts import build_cohort, open_source
from ecgquorum.cohorts.build import Progress
from ecgquorum.errors import TrainingError
from ecgquorum.evaluation import Scorecard, evaluate
from ecgquorum.recipe import load_recipe
from ecgquorum.report import write_report
from ecgquorum.training import Observer, train_ensemble

RECORDS, SECONDS = 1200, 10.0
_MARKER = "made-by-ecgquorum-demo.txt"


def run_demo(
    out: str | Path,
    *,
    force: bool = False,
    records: int = RECORDS,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> tuple[Scorecard, Path]:
    """Simulate a cohort, train the recipe `demo` on it, test it and write a report; all of it goes to `out`.

    force: replace the demo that is already in `out`
    """
    out = Path(out)
    _make_room(out, force)
    recipe = load_recipe("demo")
    source = open_source("synthetic:physionet2017", records=records, seconds=SECONDS, seed=recipe.seed)
    cohort, _ = build_cohort(source, out / "cohort", progress=progress)
    ensemble = train_ensemble(recipe, cohort, out / "run", observer=observer)
    card = evaluate(ensemble, cohort)
    card.save(out / "scorecard.json")
    return card, write_report(card, out / "report")


def _make_room(out: Path, force: bool) -> None:
    """An empty place for the demo; of an earlier one, remove what it made and nothing else."""
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out}: expected a folder, found a file")
    if out.is_dir() and any(out.iterdir()):
        if not (out / _MARKER).is_file():
            raise TrainingError(f"{out}: expected a new folder, or an earlier demo's, found something else")
        if not force:
            raise TrainingError(f"{out}: an earlier demo is there; replace it with --force, or choose another --out")
        for made in (*(out / name for name in ("cohort", "run", "report")), *out.glob(".cohort.*.partial")):
            shutil.rmtree(made, ignore_errors=True)
        (out / "scorecard.json").unlink(missing_ok=True)
    write_atomically(out / _MARKER, "ecgquorum demo --force replaces cohort, run, report and scorecard.json here.\n")
