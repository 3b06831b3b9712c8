"""Repeat requests that failed for a moment, and say in one line why one failed for good."""

import random
import re
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from ecgquorum.errors import StorageError

TRIES = 6
FIRST_WAIT_S = 0.5
"""Doubled after every attempt: 15 s in all, and up to half as much again at random."""

_CODE = re.compile(r"AWS Error ([A-Z_]+)")
_TRANSIENT = (
    "SLOW_DOWN",
    "SERVICE_UNAVAILABLE",
    "INTERNAL_FAILURE",
    "NETWORK_CONNECTION",
    "REQUEST_TIMEOUT",
    "THROTTLING",
    "REQUEST_TIME_TOO_SKEWED",
)
_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "MISSING_AUTHENTICATION_TOKEN")
_ONE_FILE = ("access denied", "HTTP status 403", "PermissionError")
_STATUS = re.compile(r"HTTP status (?:code:? )?(\d\d\d)")

T = TypeVar("T")


class FileMissingError(StorageError):
    """There is no file of this name."""


class FileRefusedError(StorageError):
    """This file cannot be had, though others may: access to it is denied, or its name cannot be stored here."""


def call_store(url: str, attempt: Callable[[], T]) -> T:
    """Call `attempt` until it succeeds; an error that does not pass, or not in time, is raised as one line."""
    for number in range(1, TRIES + 1):
        try:
            return attempt()
        except FileNotFoundError:
            raise FileMissingError(f"{url}: no such file") from None
        except Exception as error:
            if not isinstance(error, (OSError, *_web_errors(), *_arrow_errors())):
                raise
            code = describe_error(error)
            if not is_transient(error):
                is_alone = _is_denied(error) and code in _ONE_FILE  # a wrong key concerns all files
                kind = FileRefusedError if is_alone else StorageError
                raise kind(f"{url}: {_explain(error, code)}") from None
            if number == TRIES:
                raise StorageError(
                    f"{url}: no answer after {TRIES} attempts ({code}); run the same command again later"
                ) from None
        time.sleep(FIRST_WAIT_S * 2 ** (number - 1) * (1 + random.random() / 2))  # noqa: S311 (not for secrets)
    raise AssertionError  # the last attempt returns or raises


def describe_error(error: BaseException) -> str:
    """The store's code for an error, without its text, which may name keys and hosts."""
    found = _CODE.search(str(error))
    if found and found[1] != "UNKNOWN":
        return found[1].lower().replace("_", " ")
    status = _status(error)
    return f"HTTP status {status}" if status else type(error).__name__


def _status(error: BaseException) -> int:
    """The HTTP status that an error states; 0 if it states none."""
    found = _STATUS.search(str(error))
    return int(found[1] if found else getattr(error, "status", None) or 0)


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    found = _CODE.search(str(error))
    if found and found[1] in _TRANSIENT:
        return True
    if status := _status(error):
        return status == 429 or status >= 500
    is_wrong = isinstance(error, ValueError)  # a URL that the client cannot parse
    return isinstance(error, (ConnectionError, TimeoutError, *_web_errors())) and not is_wrong


def _web_errors() -> tuple[type[BaseException], ...]:
    """Errors of the web client, if it is loaded; no other code raises them."""
    aiohttp = sys.modules.get("aiohttp")
    return (aiohttp.ClientError,) if aiohttp else ()


def _arrow_errors() -> tuple[type[BaseException], ...]:
    """Errors of PyArrow, if it is loaded: names that it cannot parse, and what a store cannot do."""
    arrow = sys.modules.get("pyarrow")
    return (arrow.ArrowException,) if arrow else ()


def _is_denied(error: BaseException) -> bool:
    found = _CODE.search(str(error))
    name = found[1] if found else ""
    return name in _DENIED or _status(error) in (401, 403) or isinstance(error, PermissionError)


def _explain(error: BaseException, code: str) -> str:
    found = _CODE.search(str(error))
    name = found[1] if found else ""
    if name == "NO_SUCH_BUCKET" or ("Bucket '" in str(error) and "not found" in str(error)):
        return "there is no such bucket; check its name"
    if _is_denied(error):
        return "access denied; check the credentials (docs/scaling.md) and the rights of their owner"
    if isinstance(error, ValueError):
        return "expected names that can be requested, found one with an empty part (//) or a wrong character"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"the store refuses the request ({code})"
