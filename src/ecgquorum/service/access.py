"""The access table: every route of the desk and the roles that may use it; other paths do not exist."""

from collections.abc import Mapping
from typing import Any

from starlette.routing import compile_path

from ecgquorum.service.store.tokens import Role

PUBLIC: frozenset[Role] = frozenset()
ANY_ROLE = frozenset(Role)
_READ = frozenset({Role.READER, Role.AUDITOR, Role.ADMIN})
_REVIEW = frozenset({Role.READER, Role.ADMIN})
_UPLOAD = frozenset({Role.UPLOADER, Role.ADMIN})
_ADMIN = frozenset({Role.ADMIN})
_AUDIT = frozenset({Role.AUDITOR, Role.ADMIN})

ACCESS: dict[tuple[str, str], frozenset[Role]] = {
    ("GET", "/static/{path:path}"): PUBLIC,
    ("GET", "/login"): PUBLIC,
    ("GET", "/api/health"): PUBLIC,
    ("POST", "/api/session"): PUBLIC,
    ("DELETE", "/api/session"): ANY_ROLE,
    ("GET", "/api/openapi.json"): ANY_ROLE,
    ("GET", "/"): ANY_ROLE,
    ("GET", "/rows"): ANY_ROLE,
    ("GET", "/cases/{id}"): _READ,
    ("GET", "/upload"): _UPLOAD,
    ("GET", "/measures"): _READ,
    ("GET", "/audit"): _AUDIT,
    ("GET", "/export"): _AUDIT,
    ("GET", "/admin"): _ADMIN,
    ("GET", "/api/admin"): _ADMIN,
    ("GET", "/api/admin/access"): _ADMIN,
    ("POST", "/api/admin/tokens"): _ADMIN,
    ("DELETE", "/api/admin/tokens/{token_id}"): _ADMIN,
    ("DELETE", "/api/admin/claims/{id}"): _ADMIN,
    ("PUT", "/api/recordings"): _UPLOAD,
    ("GET", "/api/recordings"): ANY_ROLE,
    ("DELETE", "/api/recordings"): _ADMIN,
    ("PATCH", "/api/recordings/{id}"): _REVIEW,
    ("DELETE", "/api/recordings/{id}"): _ADMIN,
    ("GET", "/api/recordings/{id}"): ANY_ROLE,
    ("GET", "/api/recordings/{id}/trace"): _READ,
    ("GET", "/api/recordings/{id}/samples"): _READ,
    ("GET", "/api/recordings/{id}/maps"): _READ,
    ("GET", "/api/recordings/{id}/measurements"): _READ,
    ("GET", "/api/recordings/{id}/windows"): _READ,
    ("GET", "/api/recordings/{id}/earlier"): _READ,
    ("PUT", "/api/recordings/{id}/claim"): _REVIEW,
    ("DELETE", "/api/recordings/{id}/claim"): _REVIEW,
    ("POST", "/api/recordings/{id}/verdicts"): _REVIEW,
    ("DELETE", "/api/recordings/{id}/verdicts"): _REVIEW,
    ("POST", "/api/recordings/{id}/reopen"): _ADMIN,
    ("GET", "/api/events"): ANY_ROLE,
    ("GET", "/api/measures"): _READ,
    ("GET", "/api/audit"): _AUDIT,
    ("GET", "/api/export/labels.csv"): _AUDIT,
    ("GET", "/api/export/cohort.zip"): _AUDIT,
    ("GET", "/api/export/fhir.zip"): _AUDIT,
    ("GET", "/api/export/audit.jsonl"): _AUDIT,
}
"""Method and path of every route, and the roles that may use it; no role: public, without a token."""

_PATTERNS = [(method, compile_path(path)[0], roles) for (method, path), roles in ACCESS.items()]


def roles_for(path: str) -> Mapping[str, frozenset[Role]]:
    """Return the methods of a path and the roles that may use each."""
    found: dict[str, Any] = {}
    for method, pattern, roles in _PATTERNS:
        if pattern.match(path):
            found.setdefault(method, roles)
    return found
