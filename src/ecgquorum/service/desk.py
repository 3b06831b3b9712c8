"""The desk: settings, database, files and model in one object."""

import hmac
import threading
from functools import cached_property
from typing import Any

import numpy as np

from ecgquorum.ensemble import Ensemble, load_ensemble
from ecgquorum.errors import DeskError
from ecgquorum.recordings import Recording
from ecgquorum.service.access_log import AccessLog
from ecgquorum.service.files import FileStore
from ecgquorum.service.http_errors import NotFoundError
from ecgquorum.service.outage import Outage
from ecgquorum.service.settings import Settings
from ecgquorum.service.store.audit import GrowingCheck
from ecgquorum.service.store.database import DRAW_SECRET, SESSION_SECRET, Store
from ecgquorum.service.store.models import KnownModel
from ecgquorum.service.store.queue import AuditSample
from ecgquorum.service.store.reviews import Reviewer, SecondReading
from ecgquorum.service.store.tables import RecordingRow
from ecgquorum.service.store.tokens import Actor
from ecgquorum.service.throttle import Throttle
from ecgquorum.triage import Policy, policy_of

_NOBODY = ("anonymous", "anonymized", "anonymised", "anon", "unknown", "none", "n/a", "null", "patient", "test")
"""What files say instead of a patient's number; two such recordings need not be of one person."""


class Desk:
    """Shared state of all parts of the service."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ensemble: Ensemble = load_ensemble(settings.model, member=settings.member)
        self.policy = _policy(self.ensemble, settings.model)
        self.files = FileStore(settings.data)
        self.access_log = AccessLog(settings.data)
        self.store = Store(settings.database_url)
        self.outage = Outage()
        self.sign_ins = Throttle()
        self.log_check = GrowingCheck()
        self.computed: dict[str, Any] = {}
        self.computing = threading.Lock()
        self.classes = self.ensemble.classes
        self.class_names: dict[str, str] = self.ensemble.card.get("class_names", {})
        self.model_sha256 = str(self.ensemble.card.get("weights_sha256", ""))
        self.model_name = str(self.ensemble.card.get("name", settings.model))

    @property
    def known_model(self) -> KnownModel:
        """What the database stores of the model."""
        spec = self.ensemble.input
        return KnownModel(
            self.model_sha256, self.model_name, self.classes, self.class_names, spec.leads, float(spec.rate_hz)
        )

    @cached_property
    def audit_sample(self) -> AuditSample:
        """The random sample of recordings; the certain ones in it are reviewed as well."""
        return AuditSample(self.settings.audit_share, self.store.secret(DRAW_SECRET))

    @cached_property
    def session_secret(self) -> bytes:
        """Key of the CSRF tokens."""
        return self.store.secret(SESSION_SECRET)

    def load_secrets(self) -> None:
        """Read the secrets now: the page that reports a lost database needs one."""
        self.__dict__["session_secret"] = self.store.secret(SESSION_SECRET)

    @cached_property
    def second_reading(self) -> SecondReading:
        """Which cases are read by two."""
        sample = AuditSample(self.settings.second_share, self.store.secret(DRAW_SECRET))
        return SecondReading(sample, self.settings.second_classes)

    @cached_property
    def _patient_secret(self) -> bytes:
        return self.store.secret(DRAW_SECRET)

    def pseudonym(self, patient_id: str | None) -> str:
        """A name for the patient that says nothing about them, the same for all recordings of one patient id."""
        known = (patient_id or "").strip().casefold()
        if not known.strip("0x-_. ") or known in _NOBODY:
            return ""
        return hmac.digest(self._patient_secret, f"patient/{known}".encode(), "sha256").hex()

    def reviewer(self, actor: Actor) -> Reviewer:
        """The actor as a reviewer, at this moment."""
        now, until = self.store.now(), self.store.after(self.settings.claim_s)
        return Reviewer(actor.name, now, until, self.settings.blind_first, self.store.after(-self.settings.undo_s))

    def recording(self, row: RecordingRow) -> Recording:
        """The stored samples of a recording."""
        path = self.files.trace_path(row.id)
        if row.rate_hz is None or not row.leads or not path.is_file():
            raise NotFoundError("no samples are stored: the recording has not been read yet, or could not be read")
        signal = np.fromfile(path, dtype="<f4").reshape(len(row.leads), -1)
        return Recording(row.id, signal, row.rate_hz, tuple(row.leads), source=row.name)

    def close(self) -> None:
        """Close the database and the access log."""
        self.store.close()
        self.access_log.close()


def _policy(ensemble: Ensemble, model: str) -> Policy:
    policy = policy_of(ensemble)
    if policy is None:
        raise DeskError(f"{model}: its card has no triage policy; fit one with: ecgquorum policy fit")
    return policy
