"""Documents that carry the SHA-256 of themselves, so that a changed one is noticed. It is no signature."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def add_checksum(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The document with the SHA-256 of everything else in it under `key`."""
    rest = {name: value for name, value in document.items() if name != key}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return rest | {key: hashlib.sha256(text.encode()).hexdigest()}


def has_valid_checksum(document: Mapping[str, Any], key: str) -> bool:
    """Whether the document is as it was when it was sealed."""
    return key in document and document[key] == add_checksum(document, key)[key]
