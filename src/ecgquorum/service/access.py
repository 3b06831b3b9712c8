"""Who may ask for what: every route of the desk stands in this one table, and what does not stand here is not there."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import compile_path

from ecgquorum.service.store.tokens import Role

PUBLIC: frozenset[Role] = frozenset()
ANYBODY = frozenset(Role)
_READ = frozenset({Role.READER, Role.AUDITOR, Role.ADMIN})
_REVIEW = frozenset({Role.READER, Role.ADMIN})
_UPLOAD = frozenset({Role.UPLOADER, Role.ADMIN})
_AUDIT = frozenset({Role.AUDITOR, Role.ADMIN})

ACCESS: dict[tuple[str, str], frozenset[Role]] = {
    ("GET", "/static/{path:path}"): PUBLIC,
    ("GET", "/login"): PUBLIC,
    ("GET", "/api/health"): PUBLIC,
    ("POST", "/api/session"): PUBLIC,
    ("DELETE", "/api/session"): ANYBODY,
    ("GET", "/api/openapi.json"): ANYBODY,
    ("GET", "/"): ANYBODY,
    ("GET", "/cases/{id}"): _READ,
    ("GET", "/upload"): _UPLOAD,
    ("GET", "/measures"): _READ,
    ("GET", "/audit"): _AUDIT,
    ("GET", "/export"): _AUDIT,
    ("PUT", "/api/recordings"): _UPLOAD,
    ("GET", "/api/recordings"): ANYBODY,
    ("GET", "/api/recordings/{id}"): ANYBODY,
    ("GET", "/api/recordings/{id}/trace"): _READ,
    ("GET", "/api/recordings/{id}/samples"): _READ,
    ("GET", "/api/recordings/{id}/maps"): _READ,
    ("PUT", "/api/recordings/{id}/claim"): _REVIEW,
    ("DELETE", "/api/recordings/{id}/claim"): _REVIEW,
    ("POST", "/api/recordings/{id}/verdicts"): _REVIEW,
    ("GET", "/api/events"): ANYBODY,
    ("GET", "/api/measures"): _READ,
    ("GET", "/api/audit"): _AUDIT,
    ("GET", "/api/export/labels.csv"): _AUDIT,
    ("GET", "/api/export/cohort.zip"): _AUDIT,
    ("GET", "/api/export/fhir.zip"): _AUDIT,
    ("GET", "/api/export/audit.jsonl"): _AUDIT,
}
"""Method and path of every route, and the roles that may use it; none: everybody, without a token."""

_PATTERNS = [(method, compile_path(path)[0], roles) for (method, path), roles in ACCESS.items()]


def roles_for(path: str) -> Mapping[str, frozenset[Role]]:
    """The methods that a path has, and who may use each."""
    found: dict[str, Any] = {}
    for method, pattern, roles in _PATTERNS:
        if pattern.match(path):
            found.setdefault(method, roles)
    return found
