"""What the desk knows, in one database: recordings, answers, verdicts, tokens and the audit log."""

from ecgquorum.service.store.database import Store
from ecgquorum.service.store.tables import State

__all__ = ["State", "Store"]
