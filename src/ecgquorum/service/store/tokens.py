"""Tokens and browser sessions; only hashes are stored."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ecgquorum.errors import DeskError
from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import SessionRow, TokenRow

_BYTES = 32  # 256 random bits cannot be guessed, so a plain hash is enough
_PREFIX = "ecgq_"
_MAX_NAME = 100


class Role(StrEnum):
    """Role of a token."""

    READER = "reader"
    UPLOADER = "uploader"
    AUDITOR = "auditor"
    ADMIN = "admin"


@dataclass(frozen=True)
class Actor:
    """Who makes a request, and their roles."""

    name: str
    roles: frozenset[Role]


LOCAL = Actor("local", frozenset(Role))
"""The user of this machine while tokens are off."""

TRIAGE = "triage"
"""The uploader of recordings that come from a triaged folder."""

_RESERVED = (LOCAL.name, TRIAGE, *audit.NO_PERSONS)


def hash_secret(secret: str) -> str:
    """Hash of a secret, as stored."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def add_token(
    session: Session, at: str, name: str, role: str, expires_at: str | None = None, by: str = audit.COMMAND_LINE
) -> str:
    """Add a token; returns its secret, which is not stored."""
    name = name.strip()
    if role not in set(Role):
        raise DeskError(f"--role: expected one of {', '.join(Role)}, found {role!r}")
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise DeskError(f"expected a name of 1 to {_MAX_NAME} printable characters, found {name!r}")
    if " ".join(name.casefold().split()) in _RESERVED:
        raise DeskError(f"{name!r} is what the audit log calls a part of the desk itself; choose another name")
    if session.scalars(select(TokenRow).where(TokenRow.name == name)).first():
        raise DeskError(
            f"{name!r} already has or had a token; choose another name, since names are used in the audit log"
        )
    token = _PREFIX + secrets.token_urlsafe(_BYTES)
    row = TokenRow(
        id=secrets.token_hex(8), name=name, role=role, sha256=hash_secret(token), created_at=at, expires_at=expires_at
    )
    session.add(row)
    details = {"name": name, "role": role, "expires": expires_at}
    audit.append(session, at, by, "token added", row.id, details)
    return token


def list_tokens(session: Session) -> Sequence[TokenRow]:
    """All tokens, also revoked ones."""
    return session.scalars(select(TokenRow).order_by(TokenRow.created_at)).all()


def revoke_token(session: Session, at: str, name_or_id: str, by: str = audit.COMMAND_LINE) -> TokenRow:
    """Revoke a token and close its sessions."""
    row = session.scalars(select(TokenRow).where((TokenRow.name == name_or_id) | (TokenRow.id == name_or_id))).first()
    if row is None:
        raise DeskError(f"there is no token with the name or id {name_or_id!r}; see: ecgquorum token list")
    if row.revoked_at is None:
        row.revoked_at = at
        session.execute(delete(SessionRow).where(SessionRow.token_id == row.id))
        audit.append(session, at, by, "token revoked", row.id, {"name": row.name})
    return row


def actor_of_token(session: Session, at: str, token: str) -> Actor | None:
    """The owner of a valid token."""
    row = _valid_token(session, at, token)
    return _actor(row) if row else None


def _valid_token(session: Session, at: str, token: str) -> TokenRow | None:
    row = session.scalars(select(TokenRow).where(TokenRow.sha256 == hash_secret(token))).first()
    return row if row and is_valid(row, at) else None


def is_valid(row: TokenRow, at: str) -> bool:
    """Whether the token is neither revoked nor expired."""
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > at)


def open_session(session: Session, at: str, until: str, token: str) -> str | None:
    """Open a session with a valid token; returns its secret."""
    row = _valid_token(session, at, token)
    if row is None:
        return None
    session.execute(delete(SessionRow).where(SessionRow.until < at))
    secret = secrets.token_urlsafe(_BYTES)
    session.add(SessionRow(sha256=hash_secret(secret), token_id=row.id, until=until, seen_at=at))
    audit.append(session, at, row.name, "signed in", row.id)
    return secret


def refuse_sign_in(session: Session, at: str, address: str) -> None:
    """Note a sign-in with a wrong token."""
    audit.append(session, at, audit.UNKNOWN, "sign-in refused", "", {"address": address})


def actor_of_session(session: Session, at: str, idle_since: str, secret: str) -> Actor | None:
    """The owner of a valid session that was used since `idle_since`."""
    row = session.get(SessionRow, hash_secret(secret))
    if row is None or row.until < at or row.seen_at < idle_since:
        return None
    token = session.get_one(TokenRow, row.token_id)
    return _actor(token) if is_valid(token, at) else None


def is_stale(session: Session, recent: str, secret: str) -> bool:
    """Whether the session was last used before `recent`."""
    row = session.get(SessionRow, hash_secret(secret))
    return row is not None and row.seen_at < recent


def touch_session(session: Session, at: str, secret: str) -> None:
    """Note that the session is used now."""
    row = session.get(SessionRow, hash_secret(secret))
    if row is not None:
        row.seen_at = max(row.seen_at, at)


def close_session(session: Session, at: str, secret: str) -> None:
    """Close a session."""
    row = session.get(SessionRow, hash_secret(secret))
    if row is not None:
        name = session.get_one(TokenRow, row.token_id).name
        session.delete(row)
        audit.append(session, at, name, "signed out", row.token_id)


def _actor(row: TokenRow) -> Actor:
    role = Role(row.role)
    return Actor(row.name, frozenset(Role) if role is Role.ADMIN else frozenset({role}))
