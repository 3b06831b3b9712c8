"""An ensemble on disk: `weights.safetensors` and `card.json`.

The card says what the weights are (classes, leads, rate, scaling, window, recipe, seed, versions, data) and carries
the SHA-256 of the weights and of itself. Loading checks both before anything is built. No pickle.
"""

import hashlib
import json
import math
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as bytes_from_tensors

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.checksums import add_checksum
from ecgquorum.ensemble.card import CARD as CARD
from ecgquorum.ensemble.card import FORMAT, WEIGHTS, find_bundle, read_card
from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.errors import BundleError, EcgQuorumError
from ecgquorum.members import build_member
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import Recipe, parse_recipe


def save_bundle(ensemble: Ensemble, recipe: Recipe, path: str | Path, facts: Mapping[str, Any] | None = None) -> Path:
    """Write the ensemble to the folder `path`; the card is written last, so that no half bundle ever loads.

    facts: further entries of the card, such as the data's hash and what was measured
    """
    path = Path(path)
    tensors = {name: _stored(tensor) for name, tensor in ensemble.members.state_dict().items()}
    weights = bytes_from_tensors(tensors)
    card = {
        "format": FORMAT,
        "name": recipe.name,
        "classes": list(ensemble.classes),
        "leads": list(ensemble.spec.leads),
        "rate_hz": ensemble.spec.rate_hz,
        "scaling": ensemble.spec.scaling,
        "window_s": ensemble.spec.window_s,
        "members": len(ensemble.members),
        "information_range": list(ensemble.information_range),
        "temperature": ensemble.temperature,
        "seed": recipe.seed,
        **(facts or {}),
        "recipe": recipe.toml(),
        "versions": software_versions(),
        "git_commit": _git_commit(),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    return _written(path, weights, card)


def _written(path: Path, weights: bytes, card: dict[str, Any]) -> Path:
    (path / CARD).unlink(missing_ok=True)
    write_atomic(path / WEIGHTS, weights)
    write_atomic(path / CARD, json.dumps(add_checksum(card, "card_sha256"), indent=1, ensure_ascii=False) + "\n")
    return path


def round_weights(ensemble: Ensemble) -> None:
    """Move every matrix of weights to the nearest that half precision holds, so that its bundle is half as large.

    Vectors stay: batch norm keeps variances of microvolts there, which half precision may not reach.
    """
    for tensor in ensemble.members.state_dict().values():
        if tensor.is_floating_point() and tensor.ndim > 1:
            tensor.copy_(tensor.half())


def _stored(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as it is, in half precision where that loses nothing."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.float32 and tensor.ndim > 1 and torch.equal(tensor.half().float(), tensor):
        return tensor.half()
    return tensor


def load_ensemble(path_or_name: str | Path, device: str | torch.device = "cpu") -> Ensemble:
    """Load an ensemble from a bundle's folder, or by the name of one that ships with ecgquorum, ready to predict."""
    path = find_bundle(path_or_name)
    card = read_card(path)
    weights = _read_weights(path, card)
    try:
        recipe = parse_recipe(card["recipe"], f"{path}/{CARD}: recipe")
        spec = InputSpec(tuple(card["leads"]), float(card["rate_hz"]), card["scaling"], float(card["window_s"]))
        members = [
            build_member(recipe, index, n_leads=len(spec.leads), n_classes=len(card["classes"]), rate_hz=spec.rate_hz)
            for index in range(recipe.members)
        ]
        low, high = (float(value) for value in card["information_range"])
        temperature = float(card.get("temperature", 1.0))
    except (EcgQuorumError, TypeError, ValueError) as error:
        raise BundleError(f"{path}: expected a card that describes a model, found: {error}") from error
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise BundleError(f"{path}/{CARD}: expected a range of information, found {low} to {high}")
    if not (math.isfinite(temperature) and temperature > 0):
        raise BundleError(f"{path}/{CARD}: expected a temperature above 0, found {temperature}")
    ensemble = Ensemble(members, card["classes"], spec, (low, high), card, temperature)
    try:
        ensemble.members.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise BundleError(f"{path}/{WEIGHTS}: expected the weights of the card's network, found: {reason}") from error
    return ensemble.to(device).eval()


def add_to_card(path: str | Path, out: str | Path, facts: Mapping[str, Any]) -> Path:
    """Write the bundle of `path` to the new folder `out` with further facts in its card, and nothing but the bundle."""
    source, out = find_bundle(path), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BundleError(f"{out}: expected a new folder, found something there")
    card = read_card(source)
    content = _checked_bytes(source, card)
    return _written(out, content, {key: value for key, value in card.items() if key != "card_sha256"} | dict(facts))


def _checked_bytes(path: Path, card: Mapping[str, Any]) -> bytes:
    """The weights as they are stored, if they are the card's."""
    try:
        content = (path / WEIGHTS).read_bytes()
    except OSError as error:
        raise BundleError(f"{path}/{WEIGHTS}: expected the weights, found: {error.strerror}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != card["weights_sha256"]:
        raise BundleError(
            f"{path}/{WEIGHTS}: expected SHA-256 {card['weights_sha256'][:12]}..., found {found[:12]}...; "
            "the file is damaged or belongs to another card"
        )
    return content


def _read_weights(path: Path, card: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    try:
        return tensors_from_bytes(_checked_bytes(path, card))
    except SafetensorError as error:
        raise BundleError(f"{path}/{WEIGHTS}: expected safetensors, found: {error}") from error


def software_versions() -> dict[str, str]:
    """What this was computed with."""
    names = ("ecgquorum", "torch", "numpy", "scipy", "wfdb")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _git_commit() -> str | None:
    """The commit of the checkout that this code runs from, `-dirty` behind it if files differ; None outside of one."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # or this would be somebody else's checkout
        return git("describe", "--always", "--abbrev=40", "--dirty", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
