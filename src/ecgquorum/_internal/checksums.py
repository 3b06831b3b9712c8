"""Checksums inside JSON documents, which detect accidental changes; they are not signatures."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def add_checksum(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the document with the SHA-256 of its other entries under `key`."""
    rest = {name: value for name, value in document.items() if name != key}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return rest | {key: hashlib.sha256(text.encode()).hexdigest()}


def has_valid_checksum(document: Mapping[str, Any], key: str) -> bool:
    """Whether the checksum under `key` matches the other entries."""
    return key in document and document[key] == add_checksum(document, key)[key]
