"""Train ensembles: from objects (`train`) or from a recipe (`train_ensemble`), into a run folder.

RUN/recipe.toml           the recipe with every default written out
RUN/cohort.txt            hash of the data
RUN/members/              checkpoints of its training jobs, unless RUN/store.txt names another folder
RUN/history.csv           one row per epoch
RUN/weights.safetensors   the weights,
RUN/distance.safetensors  the fitted feature distance, if there is one, and
RUN/card.json             their description: together the bundle that `load_ensemble` reads
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from torch import nn

from ecgquorum.cohorts import Cohort, hold_out_class
from ecgquorum.ensemble import Ensemble, load_ensemble
from ecgquorum.ensemble.bundle import CARD
from ecgquorum.errors import TrainingError
from ecgquorum.members import FilteredMember, MemberFactory
from ecgquorum.parallel import distributed
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import Recipe, TrainingRecipe
from ecgquorum.storage import open_store
from ecgquorum.training.checkpoint_store import CheckpointStore
from ecgquorum.training.epoch_watch import EpochWatch
from ecgquorum.training.finish import finish_ensemble
from ecgquorum.training.job_runner import JobRunner, choose_device
from ecgquorum.training.jobs import plan_jobs
from ecgquorum.training.plan import TrainingPlan, plan_from_objects, resolve_recipe
from ecgquorum.training.run_folder import check_out, store_path, write_start
from ecgquorum.training.strategies import Baseline, Strategy


class TrainingOptions(TrainingRecipe):
    """Options of `train`: those of a recipe's [training] table, the input, and how to run.

    scaling:  of the input: "microvolt", "unit" (each lead of each recording to -1..1) or "none"
    window_s: length of the input, in seconds; None: that of the longest recording to train on
    risk:     fit the feature distance and the risk after training, if there are enough tune recordings
    device:   "auto", "cpu" or "cuda"
    resume:   continue a run that was interrupted
    store:    folder of checkpoints; runs that share one train the jobs that they have in common once
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    scaling: Literal["microvolt", "unit", "none"] = "microvolt"
    window_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    risk: bool = True
    device: str = "auto"
    resume: bool = False
    store: str | Path | None = None
    progress: Any = NO_PROGRESS

    @property
    def training(self) -> dict[str, Any]:
        """The values of a recipe's [training] table."""
        return self.model_dump(include=set(TrainingRecipe.model_fields))


def train(
    member: str | MemberFactory,
    data: Cohort,
    *,
    strategy: Strategy | None = None,
    members: int = 3,
    seed: int = 0,
    out: str | Path | None = None,
    options: TrainingOptions | None = None,
) -> Ensemble:
    """Train an ensemble of networks on the train part of a cohort; its tune part chooses the checkpoints.

    member:   a class of `nn.Module`, a function that builds one, or a registered name such as "compact". It is called
              with those of n_leads, n_classes, rate_hz and index that it has parameters for. Give further arguments
              with `functools.partial(MyNet, width=2)`.
    data:     a cohort, also one in memory: `Cohort.from_arrays(x, y, rate_hz=300)`
    strategy: how the members are made to differ, such as `Decorrelation() + FourierPartition()`; None: `Baseline()`
    members:  how many
    out:      folder to write the run to; None: nothing is kept on disk
    """
    options = options or TrainingOptions()
    plan = plan_from_objects(
        member,
        strategy or Baseline(),
        seed=seed,
        members=members,
        name=Path(out).name if out else "",
        input={"scaling": options.scaling, "window_s": options.window_s or _longest_s(data)},
        training=options.training,
        risk=options.risk,
    )
    run = partial(_train_plan, plan, data, store=options.store, device=options.device, progress=options.progress)
    with distributed.join_ranks():
        if out is not None:
            return run(Path(out), resume=options.resume)
        if distributed.n_ranks() > 1:
            raise TrainingError("give out= a folder that all processes see, since several train together")
        with tempfile.TemporaryDirectory(prefix="ecgquorum-") as folder:
            return run(Path(folder) / "run", resume=False)


def train_ensemble(
    recipe: Recipe,
    cohort: Cohort,
    out: str | Path,
    *,
    resume: bool = False,
    device: str = "auto",
    store: str | Path | None = None,
    progress: Progress = NO_PROGRESS,
) -> Ensemble:
    """Train the ensemble of a recipe and write it to the run folder `out`.

    Interrupted at any moment, the same call with `resume` continues after the last finished epoch and ends with the
    same bits. Called in several processes at once (under torchrun, or in a process group), they train each member
    together; the first one writes, and all return the ensemble.

    store: folder of checkpoints; runs that share one train the jobs that they have in common once. A run that is
           resumed keeps the store that it was started with.
    """
    plan = resolve_recipe(recipe)
    return _train_plan(plan, cohort, Path(out), resume=resume, device=device, store=store, progress=progress)


def check_trainable(recipe: Recipe, cohort: Cohort) -> TrainingPlan:
    """Raise an error if the recipe cannot be trained on the cohort, before anything is written; return the plan."""
    return resolve_recipe(recipe).prepare(hold_out_class(cohort, recipe.hold_out))


def watch_run(
    recipe: Recipe, cohort: Cohort, out: Path, *, resume: bool, store: str | Path | None, progress: Progress
) -> EpochWatch:
    """Check that a run can start, and return the watch over its jobs, which other processes train."""
    cohort = hold_out_class(cohort, recipe.hold_out)
    plan = check_trainable(recipe, cohort)
    check_out(out, plan.recipe, cohort, resume)
    names = {job.identity: job.title for job in plan_jobs(plan, cohort.data_hash)}
    return EpochWatch(store or store_path(out), names, progress)


def _train_plan(
    plan: TrainingPlan,
    cohort: Cohort,
    out: Path,
    *,
    resume: bool,
    device: str,
    store: str | Path | None,
    progress: Progress,
) -> Ensemble:
    cohort = hold_out_class(cohort, plan.recipe.hold_out)
    with distributed.join_ranks():
        plan = plan.prepare(cohort)
        check_out(out, plan.recipe, cohort, resume)
        chosen = choose_device(device)
        finished = resume and (out / CARD).is_file()
        run = f"{plan.recipe.toml()} {cohort.data_hash} {resume} {finished}"
        distributed.check_alike("recipe, cohort or run", run)
        if not finished:
            folder = open_store(store).where() if store else store_path(out)
            cohort.verify()
            write_start(out, plan.recipe, cohort, folder if store else None)
            runner = JobRunner(plan, cohort, CheckpointStore(folder), chosen, progress, out / "history.csv")
            members = runner.train_members()
            if distributed.is_first():
                ensemble = Ensemble(members, cohort.classes, runner.spec).to(chosen)
                finish_ensemble(ensemble, plan, cohort, out, progress)
            distributed.wait()
        return load_ensemble(out, member=partial(_build_network, plan, cohort), device=chosen)


def _build_network(plan: TrainingPlan, cohort: Cohort, index: int) -> nn.Module:
    """Build a member for `load_ensemble`, which adds band filters by itself."""
    member = plan.build_member(cohort, index)
    return member.network if isinstance(member, FilteredMember) else member


def _longest_s(cohort: Cohort) -> float:
    """Return the length of the longest train recording, in seconds."""
    return float(max(cohort.rows[index].n_samples for index in cohort.part("train")) / cohort.rate_hz)
