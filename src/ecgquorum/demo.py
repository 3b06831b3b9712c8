"""The whole path in a minute or two, on simulated recordings: cohort, training, test, report."""

import shutil
from pathlib import Path

from ecgquorum.cohorts import build_cohort, open_source
from ecgquorum.cohorts.build import Progress
from ecgquorum.errors import TrainingError
from ecgquorum.evaluation import Scorecard, evaluate
from ecgquorum.recipe import load_recipe
from ecgquorum.report import write_report
from ecgquorum.training import Observer, train_ensemble

RECORDS, SECONDS = 1200, 10.0


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
    if out.exists() and any(out.iterdir()):
        if not (force and (out / "cohort" / "cohort.json").is_file()):
            raise TrainingError(f"{out}: expected a new folder, found something there; use --force to replace a demo")
        shutil.rmtree(out)
    recipe = load_recipe("demo")
    source = open_source("synthetic:physionet2017", records=records, seconds=SECONDS, seed=recipe.seed)
    cohort, _ = build_cohort(source, out / "cohort", progress=progress)
    ensemble = train_ensemble(recipe, cohort, out / "run", observer=observer)
    card = evaluate(ensemble, cohort)
    card.save(out / "scorecard.json")
    return card, write_report(card, out / "report")
