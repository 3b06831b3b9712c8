"""Tokens, and the sessions that browsers open with them. Only hashes are kept."""

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

_BYTES = 32  # 256 bits: nothing that could be guessed, so a plain hash is enough
_PREFIX = "ecgq_"
_LONGEST_NAME = 100


class Role(StrEnum):
    """What somebody may do."""

    READER = "reader"
    UPLOADER = "uploader"
    AUDITOR = "auditor"
    ADMIN = "admin"


@dataclass(frozen=True)
class Actor:
    """Who asks for something, and what they may do."""

    name: str
    roles: frozenset[Role]


LOCAL = Actor("local", frozenset(Role))
"""Whoever sits at this machine, while tokens are off."""


def hashed(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def add(session: Session, at: str, name: str, role: str) -> str:
    """A new token, told this once."""
    name = name.strip()
    if role not in set(Role):
        raise DeskError(f"expected a role of {', '.join(Role)}, found {role!r}")
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name == LOCAL.name:
        raise DeskError(f"expected a name of 1 to {_LONGEST_NAME} printable characters, found {name!r}")
    if session.scalars(select(TokenRow).where(TokenRow.name == name)).first():
        raise DeskError(
            f"expected a new name, found that {name!r} has had a token; names stand in the audit log for good"
        )
    token = _PREFIX + secrets.token_urlsafe(_BYTES)
    row = TokenRow(id=secrets.token_hex(8), name=name, role=role, sha256=hashed(token), created_at=at)
    session.add(row)
    audit.append(session, at, "command line", "token added", row.id, {"name": name, "role": role})
    return token


def all_tokens(session: Session) -> Sequence[TokenRow]:
    """Every token there ever was."""
    return session.scalars(select(TokenRow).order_by(TokenRow.created_at)).all()


def revoke(session: Session, at: str, name_or_id: str) -> TokenRow:
    """End a token, and every session that was opened with it."""
    row = session.scalars(select(TokenRow).where((TokenRow.name == name_or_id) | (TokenRow.id == name_or_id))).first()
    if row is None:
        raise DeskError(f"expected the name or id of a token, found {name_or_id!r}; see: ecgquorum token list")
    if row.revoked_at is None:
        row.revoked_at = at
        session.execute(delete(SessionRow).where(SessionRow.token_id == row.id))
        audit.append(session, at, "command line", "token revoked", row.id, {"name": row.name})
    return row


def actor_of_token(session: Session, token: str) -> Actor | None:
    """Whose token it is, unless it was revoked."""
    row = session.scalars(select(TokenRow).where(TokenRow.sha256 == hashed(token))).first()
    return _actor(row) if row and row.revoked_at is None else None


def open_session(session: Session, at: str, until: str, token: str) -> str | None:
    """A new session's secret for who shows a token that holds."""
    row = session.scalars(select(TokenRow).where(TokenRow.sha256 == hashed(token))).first()
    if row is None or row.revoked_at is not None:
        return None
    session.execute(delete(SessionRow).where(SessionRow.until < at))
    secret = secrets.token_urlsafe(_BYTES)
    session.add(SessionRow(sha256=hashed(secret), token_id=row.id, until=until))
    audit.append(session, at, row.name, "signed in", row.id)
    return secret


def actor_of_session(session: Session, at: str, secret: str) -> Actor | None:
    """Who opened the session, unless it or its token has ended."""
    row = session.get(SessionRow, hashed(secret))
    if row is None or row.until < at:
        return None
    token = session.get_one(TokenRow, row.token_id)
    return _actor(token) if token.revoked_at is None else None


def close_session(session: Session, at: str, secret: str) -> None:
    """End a session."""
    row = session.get(SessionRow, hashed(secret))
    if row is not None:
        name = session.get_one(TokenRow, row.token_id).name
        session.delete(row)
        audit.append(session, at, name, "signed out", row.token_id)


def _actor(row: TokenRow) -> Actor:
    role = Role(row.role)
    return Actor(row.name, frozenset(Role) if role is Role.ADMIN else frozenset({role}))
