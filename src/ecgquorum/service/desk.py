"""The desk as a whole: its settings, its store, its files and the model that it asks."""

from functools import cached_property

import numpy as np

from ecgquorum.ensemble import Ensemble, load_ensemble
from ecgquorum.errors import DeskError
from ecgquorum.recordings import Recording
from ecgquorum.service.files import Files
from ecgquorum.service.http_errors import Missing
from ecgquorum.service.settings import Settings
from ecgquorum.service.store.database import DRAW_SECRET, SESSION_SECRET, Store
from ecgquorum.service.store.queue import Draw
from ecgquorum.service.store.reviews import Reviewer
from ecgquorum.service.store.tables import RecordingRow
from ecgquorum.service.store.tokens import Actor
from ecgquorum.triage import Policy, policy_of


class Desk:
    """What every part of the service works with."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ensemble: Ensemble = load_ensemble(settings.model)
        self.policy = _policy(self.ensemble, settings.model)
        self.files = Files(settings.data)
        self.store = Store(settings.database_url)
        self.classes = self.ensemble.classes
        self.class_names: dict[str, str] = self.ensemble.card.get("class_names", {})
        self.model_sha256 = str(self.ensemble.card.get("weights_sha256", ""))
        self.model_name = str(self.ensemble.card.get("name", settings.model))

    @cached_property
    def draw(self) -> Draw:
        """Which certain recordings people read as well."""
        return Draw(self.settings.audit_share, self.store.secret(DRAW_SECRET))

    @cached_property
    def session_secret(self) -> bytes:
        """By which forms are tied to their sessions."""
        return self.store.secret(SESSION_SECRET)

    def reviewer(self, actor: Actor) -> Reviewer:
        """The actor, as a reader of cases, now."""
        now, until = self.store.now(), self.store.after(self.settings.claim_s)
        return Reviewer(actor.name, now, until, self.settings.blind_first)

    def recording(self, row: RecordingRow) -> Recording:
        """What was kept of the recording to draw."""
        path = self.files.trace_path(row.id)
        if row.rate_hz is None or not row.leads or not path.is_file():
            raise Missing("expected samples to draw, found none: the recording has not been read, or cannot be")
        signal = np.fromfile(path, dtype="<f4").reshape(len(row.leads), -1)
        return Recording(row.id, signal, row.rate_hz, tuple(row.leads), source=row.name)

    def close(self) -> None:
        """Give back what is held open."""
        self.store.close()


def _policy(ensemble: Ensemble, model: str) -> Policy:
    policy = policy_of(ensemble)
    if policy is None:
        raise DeskError(f"{model}: expected a policy in its card, found none; fit one with: ecgquorum policy fit")
    return policy
