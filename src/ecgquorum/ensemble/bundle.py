"""An ensemble on disk: `weights.safetensors`, `card.json`, and `distance.safetensors` where a distance was fitted.

The card says what the weights are (classes, leads, rate, scaling, window, members, recipe, versions, data) and carries
the SHA-256 of both other files and of itself. Loading checks them before anything is built. No pickle.
"""

import hashlib
import json
import math
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as bytes_from_tensors
from torch import nn

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.checksums import add_checksum
from ecgquorum.ensemble.card import CARD as CARD
from ecgquorum.ensemble.card import DISTANCE, FORMAT, WEIGHTS, find_bundle, read_card
from ecgquorum.ensemble.distance import FeatureDistance
from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.ensemble.risk import RiskModel
from ecgquorum.errors import BundleError, EcgQuorumError
from ecgquorum.members import MEMBERS, BandFilter, FilteredMember, MemberFactory, build_member
from ecgquorum.preprocessing import InputSpec

if TYPE_CHECKING:
    from ecgquorum.recipes import Recipe


def save_bundle(
    ensemble: Ensemble,
    path: str | Path,
    *,
    recipe: "Recipe | None" = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write the ensemble to the folder `path`; the card is written last, so that no half bundle ever loads.

    recipe: how it was trained, if a recipe says so
    facts:  further entries of the card, such as the data's hash and what was measured
    """
    path = Path(path)
    weights = pack_weights(ensemble)
    card = {
        "format": FORMAT,
        "name": recipe.name if recipe else path.name,
        "classes": list(ensemble.classes),
        "leads": list(ensemble.input.leads),
        "rate_hz": ensemble.input.rate_hz,
        "scaling": ensemble.input.scaling,
        "window_s": ensemble.input.window_s,
        "members": [describe_member(member) for member in ensemble.members],
        "information_range": list(ensemble.information_range),
        **({"robust_information_range": list(robust)} if (robust := ensemble.robust_information_range) else {}),
        "temperature": ensemble.temperature,
        **(facts or {}),
        **({"seed": recipe.seed, "recipe": recipe.toml()} if recipe else {}),
        "versions": software_versions(),
        "git_commit": _git_commit(),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        **_describe_risk(ensemble),
    }
    _check_risk(card, path)
    return _write(path, weights, card, ensemble.distance.to_bytes() if ensemble.distance else None)


def pack_weights(ensemble: Ensemble) -> bytes:
    """Return the members' weights as a bundle stores them; the card's `weights_sha256` is of these bytes."""
    return bytes_from_tensors({name: _compress(tensor) for name, tensor in ensemble.members.state_dict().items()})


def describe_fitted_on(ensemble: Ensemble, data_hash: str) -> dict[str, Any]:
    """Return what a risk that is fitted now is fitted on: it is refused where any of it is different."""
    return {
        "weights_sha256": hashlib.sha256(pack_weights(ensemble)).hexdigest(),
        "temperature": ensemble.temperature,
        "classes": list(ensemble.classes),
        "data_hash": data_hash,
        "distance_sha256": ensemble.distance.sha256 if ensemble.distance else "",
    }


def replace_risk(path: str | Path, out: str | Path, ensemble: Ensemble, facts: Mapping[str, Any]) -> Path:
    """Write the bundle of `path` to the new folder `out` with the risk and the distance of `ensemble`, and facts."""
    source, out, card = _copy_source(path, out)
    outdated = ("risk", "distance", "no_risk")
    card = {key: value for key, value in card.items() if key not in outdated} | _describe_risk(ensemble)
    _check_risk(card, out)
    distance = ensemble.distance.to_bytes() if ensemble.distance else None
    return _write(out, _read_and_verify(source, WEIGHTS, card["weights_sha256"]), card | dict(facts), distance)


def _describe_risk(ensemble: Ensemble) -> dict[str, Any]:
    """Return what a card says about the fitted scores."""
    return {
        **({"distance": {"sha256": ensemble.distance.sha256}} if ensemble.distance else {}),
        **({"risk": ensemble.risk_model.card()} if ensemble.risk_model else {}),
    }


def _check_risk(card: Mapping[str, Any], path: Path) -> None:
    """Raise an error if the risk in a card was fitted on something else than what the card describes."""
    if "risk" not in card:
        return
    found = {**card, "distance_sha256": card.get("distance", {}).get("sha256", "")}
    changed = RiskModel.from_card(card["risk"]).differences(found)
    if changed:
        raise BundleError(
            f"{path}: its risk was fitted with other {' and '.join(changed)}; fit it again with: "
            f"ecgquorum calibrate {path} --cohort COHORT --out NEW, or fit_risk(ensemble, cohort) in Python"
        )


def describe_member(member: nn.Module) -> dict[str, Any]:
    """Return what a card says about a member: its kind, its options, and its bands in Hz if it has a band filter.

    kind:    a built-in name, or the import path of its class, which loading does not import
    options: its attribute `config`, if it has one: keyword arguments that build it again
    """
    if isinstance(member, FilteredMember):
        return describe_member(member.network) | {"bands": [list(band) for band in member.band_filter.bands]}
    config = getattr(member, "config", None)
    return {"kind": MEMBERS.name_of(type(member)), "options": config if isinstance(config, dict) else {}}


def _write(path: Path, weights: bytes, card: dict[str, Any], distance: bytes | None) -> Path:
    (path / CARD).unlink(missing_ok=True)
    write_atomic(path / WEIGHTS, weights)
    if distance is None:
        (path / DISTANCE).unlink(missing_ok=True)
    else:
        write_atomic(path / DISTANCE, distance)
    write_atomic(path / CARD, json.dumps(add_checksum(card, "card_sha256"), indent=1, ensure_ascii=False) + "\n")
    return path


def round_weights(ensemble: Ensemble) -> None:
    """Move every matrix of weights to the nearest that half precision holds, so that its bundle is half as large.

    Vectors stay: batch norm keeps variances of microvolts there, which half precision may not reach.
    """
    for tensor in ensemble.members.state_dict().values():
        if tensor.is_floating_point() and tensor.ndim > 1:
            tensor.copy_(tensor.half())


def _compress(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, in half precision where that loses nothing."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.float32 and tensor.ndim > 1 and torch.equal(tensor.half().float(), tensor):
        return tensor.half()
    return tensor


def load_ensemble(
    path_or_name: str | Path,
    *,
    member: str | MemberFactory | None = None,
    device: str | torch.device = "cpu",
    risk: bool = True,
) -> Ensemble:
    """Load an ensemble from a bundle's folder, or by the name of one that ships with ecgquorum, ready to predict.

    member: the class of its members, a function that builds one, or a registered name, where they are not built-in
            networks; loading never imports code that is not named here
    risk:   False: without the fitted risk and distance, to fit them again
    """
    path = find_bundle(path_or_name)
    card = read_card(path)
    if not risk:
        card = {key: value for key, value in card.items() if key not in ("risk", "distance")}
    _check_risk(card, path)
    weights = _read_weights(path, card)
    try:
        spec = InputSpec(tuple(card["leads"]), float(card["rate_hz"]), card["scaling"], float(card["window_s"]))
        members = [
            _build_described(described, index, member, spec, len(card["classes"]))
            for index, described in enumerate(card["members"])
        ]
        low, high = (float(value) for value in card["information_range"])
        robust_low, robust_high = (float(value) for value in card.get("robust_information_range", (low, high)))
        temperature = float(card.get("temperature", 1.0))
    except (EcgQuorumError, AttributeError, TypeError, ValueError) as error:
        raise BundleError(f"{path}: cannot build the model that its card describes: {error}") from error
    for start, end in ((low, high), (robust_low, robust_high)):
        if not (math.isfinite(start) and math.isfinite(end) and start < end):
            raise BundleError(f"{path}/{CARD}: expected a range of information, found {start} to {end}")
    if not (math.isfinite(temperature) and temperature > 0):
        raise BundleError(f"{path}/{CARD}: expected a temperature above 0, found {temperature}")
    ensemble = Ensemble(members, card["classes"], spec, (low, high), card, temperature)
    if "robust_information_range" in card:
        ensemble.robust_information_range = (robust_low, robust_high)
    try:
        ensemble.members.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise BundleError(f"{path}/{WEIGHTS}: expected the weights of the card's network, found: {reason}") from error
    if "distance" in card:
        content = _read_and_verify(path, DISTANCE, card["distance"]["sha256"])
        ensemble.distance = FeatureDistance.from_bytes(content, len(members))
    if "risk" in card:
        ensemble.risk_model = RiskModel.from_card(card["risk"])
    return ensemble.to(device).eval()


def _build_described(
    described: Mapping[str, Any], index: int, member: str | MemberFactory | None, spec: InputSpec, n_classes: int
) -> nn.Module:
    """Build the member that `describe_member` described; of networks that are not built in, the one that was named."""
    kind, options = str(described["kind"]), dict(described["options"])
    if kind not in MEMBERS.builtin:
        if member is None:
            raise BundleError(
                f"its members are {kind}, which is not built in; name their class: load_ensemble(..., member=...)"
            )
        factory = MEMBERS.get(member) if isinstance(member, str) else member
        if not isinstance(factory, type):
            options = {}  # a function decides for itself
    else:
        factory = MEMBERS.get(kind)
    network = build_member(
        factory,
        n_leads=len(spec.leads),
        n_classes=n_classes,
        rate_hz=spec.rate_hz,
        index=index,
        seed=0,
        options=options,
    )
    bands = described.get("bands")
    return network if bands is None else BandFilter([(low, high) for low, high in bands], spec.rate_hz).then(network)


def add_to_card(path: str | Path, out: str | Path, facts: Mapping[str, Any]) -> Path:
    """Write the bundle of `path` to the new folder `out` with further facts in its card, and nothing but the bundle."""
    source, out, card = _copy_source(path, out)
    weights = _read_and_verify(source, WEIGHTS, card["weights_sha256"])
    distance = _read_and_verify(source, DISTANCE, card["distance"]["sha256"]) if "distance" in card else None
    return _write(out, weights, card | dict(facts), distance)


def _copy_source(path: str | Path, out: str | Path) -> tuple[Path, Path, dict[str, Any]]:
    """Return the folder and the card of a bundle to copy, and the folder for the copy, if that is new."""
    source, out = find_bundle(path), Path(out)
    check_is_new(out)
    return source, out, {key: value for key, value in read_card(source).items() if key != "card_sha256"}


def check_is_new(out: Path) -> None:
    """Raise an error if there is something in the folder for a new bundle."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BundleError(f"{out}: expected a new folder, found something there")


def _read_and_verify(path: Path, name: str, expected: str) -> bytes:
    """A file of the bundle as it is stored, if it is the card's."""
    try:
        content = (path / name).read_bytes()
    except OSError as error:
        raise BundleError(f"{path}/{name}: expected a file of the bundle, found: {error.strerror}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise BundleError(
            f"{path}/{name}: expected SHA-256 {expected[:12]}..., found {found[:12]}...; "
            "the file is damaged or belongs to another card"
        )
    return content


def _read_weights(path: Path, card: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    try:
        return tensors_from_bytes(_read_and_verify(path, WEIGHTS, card["weights_sha256"]))
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
