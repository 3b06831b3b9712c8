"""Run the jobs of a plan: each is loaded from the store, or trained from what other jobs left there."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts import Cohort
from ecgquorum.errors import TrainingError
from ecgquorum.members import count_features
from ecgquorum.parallel import distributed
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import Recipe
from ecgquorum.training.checkpoint import Checkpoint
from ecgquorum.training.checkpoint_store import CheckpointStore
from ecgquorum.training.history import HistoryRow, format_epoch, history_csv
from ecgquorum.training.jobs import TrainingJob, plan_jobs
from ecgquorum.training.loop import fit_job
from ecgquorum.training.phase import PhaseContext
from ecgquorum.training.plan import TrainingPlan, resolve_recipe

_PATIENCE_S = 60.0


def train_job(recipe: Recipe, cohort: Cohort, store: str | Path, identity: str, *, device: str = "auto") -> HistoryRow:
    """Train one job of a recipe from what is in the store, into the store; return the last row of its history.

    The jobs that it needs have been finished, perhaps on another machine a moment ago.
    """
    runner = JobRunner(resolve_recipe(recipe).prepare(cohort), cohort, CheckpointStore(store), choose_device(device))
    runner.wait_for_needs(identity)
    runner.train(identity)
    return runner.history[-1]


def wait_for_jobs(recipe: Recipe, cohort: Cohort, store: str | Path) -> None:
    """Wait until this machine sees all jobs of a recipe, which other processes have finished."""
    plan = resolve_recipe(recipe).prepare(cohort)
    JobRunner(plan, cohort, CheckpointStore(store), torch.device("cpu")).wait_for_all()


def wait_until(is_there: Callable[[], bool], missing: str) -> None:
    """Wait until this machine sees what another one has written, since shared file systems can be slow.

    missing: the error if it does not appear in time
    """
    deadline = time.monotonic() + _PATIENCE_S
    while not is_there():
        if time.monotonic() > deadline:
            raise TrainingError(missing)
        time.sleep(1)


class JobRunner:
    """Runs the jobs of a prepared plan, or loads them.

    history: the rows of all jobs so far
    """

    def __init__(
        self,
        plan: TrainingPlan,
        cohort: Cohort,
        store: CheckpointStore,
        device: torch.device,
        progress: Progress = NO_PROGRESS,
        history_path: Path | None = None,
    ) -> None:
        self.plan, self.cohort, self.store, self.device = plan, cohort, store, device
        self.spec = plan.input_spec(cohort)
        self.history: list[HistoryRow] = []
        self._progress = progress if distributed.is_first() else NO_PROGRESS
        self._history_path = history_path if distributed.is_first() else None
        self._jobs = {job.identity: job for job in plan_jobs(plan, cohort.data_hash)}
        self._n_epochs = sum(job.epochs for job in self._jobs.values())
        self._epochs_done = 0
        self._members: dict[str, list[nn.Module]] = {}

    def train_members(self) -> list[nn.Module]:
        """Run all jobs; return every member as its last job left it."""
        latest: dict[int, nn.Module] = {}
        for identity, job in self._jobs.items():
            latest |= dict(zip(job.members, self.train(identity), strict=True))
        return [latest[index] for index in range(self.plan.recipe.members)]

    def train(self, identity: str) -> list[nn.Module]:
        """Return a job's members with their best weights, loaded from the store or trained now."""
        if identity not in self._members:
            self._members[identity] = self._run(self._jobs[identity])
        return self._members[identity]

    def wait_for_needs(self, identity: str) -> None:
        """Wait until this machine sees the jobs that a job needs."""
        if identity not in self._jobs:
            raise TrainingError(f"{self.cohort.path}: this is not the cohort that the training jobs were planned for")
        self._wait_for(self._jobs[identity].needs)

    def wait_for_all(self) -> None:
        """Wait until this machine sees every job."""
        self._wait_for(self._jobs)

    def _wait_for(self, identities: Iterable[str]) -> None:
        for identity in sorted(identities):
            missing = f"{self.store.checkpoint(identity)}: no finished checkpoint appeared; is the folder shared?"
            wait_until(partial(self._is_finished, self._jobs[identity]), missing)

    def _is_finished(self, job: TrainingJob) -> bool:
        return self._load_finished(job) is not None

    def _load_finished(self, job: TrainingJob) -> Checkpoint | None:
        """Return the job's checkpoint if it is there and complete."""
        state = self.store.checkpoint(job.identity).load(job.identity)
        return state if state and state.epoch >= job.epochs else None

    def _run(self, job: TrainingJob) -> list[nn.Module]:
        members = [self.plan.build_member(self.cohort, index) for index in job.members]
        state = self._load_finished(job)
        distributed.check_alike("finished jobs in the store", f"{job.identity} {state is not None}")
        if state is not None:
            self._progress.log(f"{job.title}: found in the store, not trained again")
            nn.ModuleList(members).load_state_dict(state.best)
        else:
            state = self._fit(job, members)
        self._epochs_done += job.epochs
        self._write_history(state.history)
        self.history += state.history
        return [member.to(self.device) for member in members]

    def _fit(self, job: TrainingJob, members: list[nn.Module]) -> Checkpoint:
        for index, member, identity in zip(job.members, members, job.continues, strict=False):
            before = self._jobs[identity]
            member.load_state_dict(self.train(identity)[before.members.index(index)].state_dict())
        phase = next(phase for phase in self.plan.phases() if phase.name == job.phase)
        recipe = self.plan.recipe
        changes = {"epochs": phase.epochs} | ({"learning_rate": phase.learning_rate} if phase.learning_rate else {})
        context = PhaseContext(
            members=members,
            indices=job.members,
            phase=job.phase,
            cohort=self.cohort,
            spec=self.spec,
            options=recipe.training.model_copy(update=changes),
            strategy=self.plan.strategy,
            earlier=[[self._earlier(identity) for identity in earlier] for earlier in job.earlier],
            device=self.device,
            seed=recipe.seed,
            stream=("member", job.members[0]) if job.phase == "base" else (job.phase, *job.members),
        )
        tuned = ""

        def on_batch(epoch: int, batch: int, n_batches: int, loss: float) -> None:
            text = f"{job.title}  epoch {epoch}/{job.epochs}  loss {loss:.3f}{tuned}"
            done = (self._epochs_done + epoch - 1) * n_batches + batch
            self._progress.update(text, done, self._n_epochs * n_batches)

        def on_epoch(history: list[HistoryRow]) -> None:
            nonlocal tuned
            tuned = f"  tune {history[-1]['tune_accuracy']:.3f}"
            self._write_history(history)
            self._progress.log(f"{job.title}  {format_epoch(history[-1])}")

        return fit_job(job, phase, context, self.store.checkpoint(job.identity), on_batch, on_epoch)

    def _earlier(self, identity: str) -> torch.Tensor | nn.Module:
        """Return a job's member, or where every view of a recording is the same, its features."""
        same_view = not self.plan.recipe.training.has_augmentation
        if same_view and not any(part.uses_earlier_logits for part in self.plan.strategy.parts):
            return self._features(identity)
        (member,) = self.train(identity)
        return member

    def _features(self, identity: str) -> torch.Tensor:
        """Return the features of every train recording of a job's member."""
        (member,) = self.train(identity)
        n_features = count_features(member, self.cohort.batch([0], self.spec).signal.to(self.device))
        shape = (len(self.cohort.part("train")), n_features)
        return distributed.from_first(lambda: self.store.features(identity, member, self.cohort, self.spec), shape)

    def _write_history(self, rows: list[HistoryRow]) -> None:
        """Keep `history.csv` up to date; `rows` are all of the present job's so far."""
        if self._history_path:
            write_atomic(self._history_path, history_csv([*self.history, *rows]))


def choose_device(name: str) -> torch.device:
    """Return the device of this name; `auto` is CUDA where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TrainingError(f"--device: expected auto, cpu or cuda, found {name!r}") from error
    if device.type not in ("cpu", "cuda"):
        raise TrainingError(f"--device: expected auto, cpu or cuda, found {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("--device: there is no CUDA device; use cpu or auto")
    return device
