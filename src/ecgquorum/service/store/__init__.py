"""The database of the desk: recordings, results, verdicts, tokens and the audit log."""

from ecgquorum.service.store.database import Store
from ecgquorum.service.store.tables import State

__all__ = ["State", "Store"]
