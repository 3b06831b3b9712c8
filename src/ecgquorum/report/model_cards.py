"""A model card in Markdown, written from a bundle's `card.json` and nothing else."""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ecgquorum.cohorts.fetch import DATA_SETS
from ecgquorum.errors import BundleError
from ecgquorum.evaluation.conditions import CORRUPTION, ENSEMBLE, MEMBERS, MIXED, NATURAL, OOD, SHARED_WORST, WORST
from ecgquorum.evaluation.metric_rows import EnsembleFacts
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.recipes import Recipe, parse_recipe, recipe_names
from ecgquorum.report.templates import load_template

METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "f1": "F1 of",
    "ece_raw": "ECE, raw probabilities",
    "ece": "ECE",
    "brier_raw": "Brier score, raw probabilities",
    "brier": "Brier score",
    "r_cc_auc": "R_cc AUC",
    "r_iu_auc": "R_iu AUC",
    "ua_auc": "UA AUC",
    "augrc": "AUGRC",
    "risk_at_90": "errors among the 90 % that are most certain",
}
"""The metrics that a card keeps of a scorecard, and their names in it."""

_FIELDS = ("attack", "target", "epsilon", "metric", "detail", "value", "low", "high", "n_records")
CardRow = dict[str, Any]


def select_results(scorecard: Scorecard, card: Mapping[str, Any]) -> dict[str, Any]:
    """Select the scorecard's results of the model with this card, to be kept in the card."""
    one = _find_model(scorecard, card)
    rows = [row for row in scorecard.find(ensemble=one.name) if row.target != MEMBERS and row.estimate]
    rows = [row for row in rows if row.metric in METRICS and (row.metric == "f1" or not row.detail)]
    rows = [row for row in rows if row.target not in (CORRUPTION, OOD)]
    rows = [row for row in rows if row.attack != SHARED_WORST]  # depends on the ensembles beside it
    data = scorecard.data
    return {
        "source": data.source,
        "part": data.part,
        "data_hash": data.data,
        "same_cohort": one.same_cohort,
        "n_recordings": data.n_recordings,
        "unit": data.unit,
        "rows": [{name: getattr(row, name) for name in _FIELDS} for row in rows],
    }


def _find_model(scorecard: Scorecard, card: Mapping[str, Any]) -> EnsembleFacts:
    """The ensemble with the card's weights; of several, the one with the card's strategy."""
    digest, recipe = card["weights_sha256"], _parse_recipe(card)
    found = [one for one in scorecard.ensembles if one.model == digest]
    if not found:
        raise BundleError(f"the scorecard has no results of the weights of {card['name']} ({digest[:12]}...)")
    return next((one for one in found if recipe and one.strategy == recipe.strategy), found[0])


def model_card(card: Mapping[str, Any]) -> str:
    """Write the card; sections about which its bundle has no facts are left out."""
    recipe, names = _parse_recipe(card), card.get("class_names", {})
    results = card.get("results")
    rows: list[CardRow] = results["rows"] if results else []
    natural = [row for row in rows if row["attack"] == NATURAL]
    by_class = [row for row in natural if row["metric"] == "f1"]
    weakest = min(by_class, key=lambda row: float(row["value"]), default=None)
    data_set = next((one for one in DATA_SETS.values() if one.title == card.get("data")), None)
    n_members, network = len(card["members"]), f"`{card['members'][0]['kind']}` network"
    text = load_template("model_card.md.jinja").render(
        card=card,
        recipe=recipe,
        n_members=n_members,
        what=f"an ensemble of {n_members} {network}s" if n_members > 1 else f"one {network}",
        classes=[f"{code} ({names[code]})" if names.get(code) else code for code in card["classes"]],
        rounding=_round_up(card["rounding_moved"]) if "rounding_moved" in card else "",
        hardening=_describe_hardening(recipe),
        check=card.get("checks", {}).get("harden"),
        bands=_describe_bands(card),
        terms=data_set.terms if data_set else "",
        results=results,
        n_tested=sum(results["n_recordings"].values()) if results else 0,
        natural=[(f"{METRICS[row['metric']]} {row['detail']}".strip(), _format_row(row)) for row in natural],
        attacked=list(_attack_rows(rows)),
        worst=_describe_worst(rows, results["unit"] if results else ""),
        weakest=f"{weakest['detail']}: F1 {_format_row(weakest)}" if weakest else "",
        risk=next((_format_row(row) for row in natural if row["metric"] == "risk_at_90"), ""),
        share=lambda value: "–" if value is None else f"{100 * value:.1f}",
        ships=card["name"] in recipe_names() and data_set is not None,
        commands=list(_list_commands(card, recipe)) if recipe else [],
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _parse_recipe(card: Mapping[str, Any]) -> Recipe | None:
    return parse_recipe(card["recipe"]) if "recipe" in card else None


def _attack_rows(rows: list[CardRow]) -> Iterator[tuple[str, int, str, str]]:
    attacked = [row for row in rows if row["attack"] != NATURAL and not row["attack"].startswith(MIXED)]
    by_key = {(row["attack"], row["target"], row["epsilon"], row["metric"]): row for row in attacked}
    for key in dict.fromkeys((row["attack"], row["target"], row["epsilon"]) for row in attacked):
        attack, target, epsilon = key
        accuracy, r_iu = by_key.get((*key, "accuracy")), by_key.get((*key, "r_iu_auc"))
        if accuracy:
            what = attack if attack == WORST else f"{attack} on {target}"
            yield (
                f"{what}, {epsilon:g}",
                accuracy["n_records"],
                _format_row(accuracy),
                _format_row(r_iu) if r_iu else "–",
            )


def _describe_worst(rows: list[CardRow], unit: str) -> str:
    """Accuracy under the weakest attack on the whole ensemble."""
    whole = [row for row in rows if row["target"] == ENSEMBLE and row["metric"] == "accuracy"]
    attacks = [row for row in whole if row["attack"] != WORST and not row["attack"].startswith(MIXED)]
    lowest = min(attacks, key=lambda row: (float(row["epsilon"]), float(row["value"])), default=None)
    if lowest is None:
        return ""
    attack = f"{lowest['attack']} of {lowest['epsilon']:g} ({unit})"
    return f"under {attack} on the ensemble, accuracy is {_format_row(lowest)} %"


def _describe_hardening(recipe: Recipe | None) -> str:
    harden = recipe.strategies.get("harden") if recipe and "harden" in recipe.parts else None
    if not harden:
        return ""
    which = ", ".join(map(str, harden.get("members") or ()))
    steps = "one step" if harden.get("steps", 1) == 1 else f"{harden['steps']} steps"
    return (f"members {which}: " if which else "") + (
        f"{100 * harden['share']:g} % of every batch was attacked with {steps} of up to {harden['epsilon']:g}"
    )


def _describe_bands(card: Mapping[str, Any]) -> str:
    """The frequency bands of each member, where one has a band filter."""
    if not any("bands" in member for member in card["members"]):
        return ""
    described = [
        " and ".join(f"{low:g}–{high:g} Hz" for low, high in member["bands"])
        if "bands" in member
        else "all frequencies"
        for member in card["members"]
    ]
    return "; ".join(f"member {number}: {bands}" for number, bands in enumerate(described))


def _list_commands(card: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    split = card.get("split", {})
    shares = {
        f"--{key.replace('_', '-')}": split[key] for key in ("test_ids", "tune_share", "test_share") if key in split
    }
    shares["--split-seed"] = split.get("seed", 0)
    options = " ".join(f"{name} {shlex.quote(str(value))}" for name, value in shares.items())
    yield f"ecgquorum cohort build SOURCE --rate {card['rate_hz']:g} {options} --out cohort"
    yield f"ecgquorum train {recipe.name} --strategy {recipe.strategy} --cohort cohort --out run"
    yield f"ecgquorum evaluate {card['name']} --cohort cohort --out scorecard.json"


def _round_up(value: float) -> str:
    if value <= 0:
        return "0"
    scale = 10.0 ** (1 - math.ceil(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.1g}"


def _format_row(row: CardRow) -> str:
    return f"{100 * row['value']:.1f} ({100 * row['low']:.1f}–{100 * row['high']:.1f})"
