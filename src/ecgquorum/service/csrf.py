"""CSRF tokens of pages."""

import hashlib
import hmac

from ecgquorum.service.desk import Desk


def csrf_token(desk: Desk, cookie: str) -> str:
    """The CSRF token that pages of this session send with every change."""
    return hmac.digest(desk.session_secret, f"csrf/{cookie}".encode(), hashlib.sha256).hex()
