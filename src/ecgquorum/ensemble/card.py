"""The card of a bundle: what its weights are, read without PyTorch."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from ecgquorum._internal.checksums import has_valid_checksum
from ecgquorum.errors import BundleError

FORMAT = 2
WEIGHTS, CARD, DISTANCE = "weights.safetensors", "card.json", "distance.safetensors"
_REQUIRED = (
    "format",
    "classes",
    "leads",
    "rate_hz",
    "scaling",
    "window_s",
    "members",
    "information_range",
    "weights_sha256",
)


def bundle_names() -> list[str]:
    """Return the names of the bundles that ship with ecgquorum."""
    folder = files("ecgquorum") / "bundles"
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []


def find_bundle(path_or_name: str | Path) -> Path:
    """Return the folder of a bundle, given that folder or the name of a bundle that ships."""
    path = Path(path_or_name)
    if path.is_dir():
        return path
    if str(path_or_name) in bundle_names():
        return Path(str(files("ecgquorum") / "bundles" / str(path_or_name)))
    known = ", ".join(bundle_names()) or "none ship with this version"
    raise BundleError(f"{path_or_name}: expected the folder of a bundle, or the name of one ({known}), found neither")


def read_card(path_or_name: str | Path) -> dict[str, Any]:
    """Read a bundle's card and check its SHA-256, without loading the weights.

    path_or_name: the bundle's folder, or the name of a bundle that ships
    """
    path = find_bundle(path_or_name)
    try:
        card = json.loads((path / CARD).read_text())
    except FileNotFoundError:
        hint = "its training has not finished" if (path / "recipe.toml").is_file() else "this is no bundle"
        raise BundleError(f"{path}: expected {CARD}, found none; {hint}") from None
    except (OSError, ValueError) as error:
        raise BundleError(f"{path}/{CARD}: expected JSON, found it damaged: {error}") from error
    if isinstance(card, dict) and card.get("format") == 1:
        raise BundleError(f"{path}: this bundle is of ecgquorum 0.1, which this version cannot read; train it again")
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        found = card.get("format") if isinstance(card, dict) else "no object"
        raise BundleError(f"{path}/{CARD}: expected format {FORMAT}, found {found}")
    if not has_valid_checksum(card, "card_sha256"):
        raise BundleError(f"{path}/{CARD}: expected its own SHA-256 to match, found the card changed or damaged")
    missing = [key for key in _REQUIRED if key not in card]
    if missing:
        raise BundleError(f"{path}/{CARD}: expected {', '.join(missing)}, found none")
    return card
