"""A strategy's trainings: each found in the store, or trained from what the others left there."""

import csv
import io
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import nn

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.seeds import derive_seed
from ecgquorum.cohorts import Cohort
from ecgquorum.errors import TrainingError
from ecgquorum.members import BandFilter, build_member, count_features, parse_bands
from ecgquorum.parallel import distributed
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import Recipe
from ecgquorum.training.checkpoint import Checkpoint
from ecgquorum.training.checkpoint_store import MemberStore
from ecgquorum.training.decorrelation import Decorrelation
from ecgquorum.training.loop import Observer, Row, SilentObserver, train_unit
from ecgquorum.training.phases import AdversarialPhase, BasePhase, DvergePhase, Phase, PhaseContext
from ecgquorum.training.strategy import PhaseName, Unit, plan_jobs, plan_phase

_PHASES: dict[PhaseName, type[BasePhase] | type[AdversarialPhase] | type[DvergePhase]] = {
    "base": BasePhase,
    "adv": AdversarialPhase,
    "dverge": DvergePhase,
}

_PATIENCE_S = 60.0


def wait_until(is_there: Callable[[], bool], missing: str) -> None:
    """Wait until this machine sees what another one has written; a shared file system may take its time.

    missing: what to say when it never does
    """
    given_up = time.monotonic() + _PATIENCE_S
    while not is_there():
        if time.monotonic() > given_up:
            raise TrainingError(missing)
        time.sleep(1)


def train_job(recipe: Recipe, cohort: Cohort, store: str | Path, identity: str, *, device: str = "auto") -> Row:
    """Train one of the trainings that the recipe's strategy takes, from what is in the store, into the store.

    Gives the last line of its history. What it needs has been finished, perhaps on another machine a moment ago.
    """
    run = Trainings(recipe, cohort, MemberStore(store), choose_device(device), SilentObserver())
    run.wait_for_needs(identity)
    run.trained(identity)
    return run.history[-1]


def wait_for_jobs(recipe: Recipe, cohort: Cohort, store: str | Path) -> None:
    """Wait until this machine sees all trainings of the recipe's strategy, which others have finished."""
    Trainings(recipe, cohort, MemberStore(store), torch.device("cpu"), SilentObserver()).wait_for_all()


def fresh_member(recipe: Recipe, cohort: Cohort, index: int) -> nn.Module:
    """A member as it is before it is trained."""
    n_leads, n_classes = len(cohort.leads), len(cohort.classes)
    return build_recipe_member(recipe, index, n_leads=n_leads, n_classes=n_classes, rate_hz=cohort.rate_hz)


def build_recipe_member(recipe: Recipe, index: int, *, n_leads: int, n_classes: int, rate_hz: float) -> nn.Module:
    """Build the recipe's member number `index`, initialised from the recipe's seed, behind its band filter."""
    network = build_member(
        recipe.member.kind,
        n_leads=n_leads,
        n_classes=n_classes,
        rate_hz=rate_hz,
        index=index,
        seed=derive_seed(recipe.seed, "member", index, "weights"),
        options={"width": recipe.member.width, "dropout": recipe.member.dropout},
    )
    bands = parse_bands(recipe.bands_of(index), rate_hz)
    return network if bands is None else BandFilter(bands, rate_hz).then(network)


class Trainings:
    """A strategy's trainings, done or found one after another.

    history: of those that were asked for so far
    """

    def __init__(
        self,
        recipe: Recipe,
        cohort: Cohort,
        store: MemberStore,
        device: torch.device,
        observer: Observer,
        history_path: Path | None = None,
    ) -> None:
        self.recipe, self.cohort, self.store, self.device = recipe, cohort, store, device
        self.spec = InputSpec(cohort.leads, cohort.rate_hz, recipe.input.scaling, recipe.input.window_s)
        self.history: list[Row] = []
        self._observer = observer if distributed.is_first() else SilentObserver()
        self._history_path = history_path if distributed.is_first() else None
        self._units = {unit.identity: unit for unit in plan_jobs(recipe, cohort.data_hash)}
        self._trained: dict[str, list[nn.Module]] = {}

    def trained_members(self) -> list[nn.Module]:
        """Every member as its last training left it."""
        latest: dict[int, nn.Module] = {}
        for identity, unit in self._units.items():
            latest |= dict(zip(unit.members, self.trained(identity), strict=True))
        return [latest[index] for index in range(self.recipe.members)]

    def wait_for_needs(self, identity: str) -> None:
        """Wait until this machine sees what a unit needs."""
        if identity not in self._units:
            raise TrainingError(f"{self.cohort.path}: expected the cohort that this was planned with, found another")
        self._wait_for(self._units[identity].needs)

    def wait_for_all(self) -> None:
        """Wait until this machine sees every training."""
        self._wait_for(self._units)

    def _wait_for(self, identities: Iterable[str]) -> None:
        for identity in sorted(identities):
            path, unit = self.store.checkpoint_path(identity), self._units[identity]
            missing = f"{path}: expected a finished training, found none; is the folder shared?"
            wait_until(partial(self._is_finished, unit), missing)

    def _is_finished(self, unit: Unit) -> bool:
        return self._finished(unit) is not None

    def _finished(self, unit: Unit) -> Checkpoint | None:
        """The unit's checkpoint, if it is there and at its end."""
        path = self.store.checkpoint_path(unit.identity)
        if not path.is_file():
            return None
        state = Checkpoint.load(path, unit.identity)
        return state if state.epoch >= plan_phase(self.recipe, unit.phase).epochs else None

    def trained(self, identity: str) -> list[nn.Module]:
        """A unit's members with their deployed weights, from the store or trained now."""
        if identity not in self._trained:
            self._trained[identity] = self._trained_unit(self._units[identity])
        return self._trained[identity]

    def _trained_unit(self, unit: Unit) -> list[nn.Module]:
        plan, path = plan_phase(self.recipe, unit.phase), self.store.checkpoint_path(unit.identity)
        members = [fresh_member(self.recipe, self.cohort, index) for index in unit.members]
        state = self._finished(unit)
        distributed.check_alike("trainings in their store", f"{unit.identity} {state is not None}")
        if state is not None:
            self._observer.on_unit(unit, plan.epochs, found=True)
            torch.nn.ModuleList(members).load_state_dict(state.best)
        else:
            self._observer.on_unit(unit, plan.epochs, found=False)
            state = train_unit(self._phase(unit, members), unit, path, self._observer, self._record)
        self._record(state.history)
        self.history += state.history
        return [member.to(self.device) for member in members]

    def _phase(self, unit: Unit, members: list[nn.Module]) -> Phase:
        for member, before in zip(members, unit.continues, strict=False):
            member.load_state_dict(self.trained(before)[0].state_dict())
        stream = ("member", unit.members[0]) if unit.phase == "base" else (unit.phase, *unit.members)
        setting = PhaseContext(
            self.cohort, self.spec, self.recipe, plan_phase(self.recipe, unit.phase), self.device, stream
        )
        terms = [
            Decorrelation(
                self.recipe.decorrelation,
                [self._features(identity) for identity in identities],
                self.cohort,
            )
            for identities in unit.against
        ]
        return _PHASES[unit.phase](members, setting, terms)

    def _features(self, identity: str) -> torch.Tensor:
        """A trained member's features of every train recording."""
        member = self.trained(identity)[0]
        shape = (
            len(self.cohort.part("train")),
            count_features(member, self.cohort.batch([0], self.spec).signal.to(self.device)),
        )
        return distributed.from_first(lambda: self.store.features(identity, member, self.cohort, self.spec), shape)

    def _record(self, rows: list[Row]) -> None:
        """Keep `history.csv` up to date while a unit trains; `rows` are all of the unit's so far."""
        if self._history_path:
            write_atomic(self._history_path, history_csv([*self.history, *rows]))


def choose_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TrainingError(f"--device: expected auto, cpu or cuda, found {name!r}") from error
    if device.type not in ("cpu", "cuda"):
        raise TrainingError(f"--device: expected auto, cpu or cuda, found {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("--device: expected a CUDA device, found none; use cpu or auto")
    return device


def history_csv(history: Sequence[Row]) -> str:
    """One line an epoch."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(history[0]) if history else ["phase", "member", "epoch"])
    writer.writeheader()
    writer.writerows(
        {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()} for row in history
    )
    return text.getvalue()
