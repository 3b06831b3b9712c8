"""A model card in Markdown, written from a bundle's `card.json`: what the card holds, and nothing that it does not."""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ecgquorum.cohorts.fetch import DATA_SETS
from ecgquorum.errors import BundleError
from ecgquorum.evaluation.conditions import MEMBERS, MIXED, NATURAL, WORST
from ecgquorum.evaluation.scorecard import EnsembleFacts, Scorecard
from ecgquorum.recipes import PartitionRecipe, Recipe, parse_recipe, recipe_names
from ecgquorum.report.templates import template

MEASURES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "f1": "F1 of",
    "ece": "ECE, raw probabilities",
    "ece_calibrated": "ECE, calibrated",
    "brier": "Brier, raw probabilities",
    "brier_calibrated": "Brier, calibrated",
    "r_cc_auc": "R_cc AUC",
    "r_iu_auc": "R_iu AUC",
    "ua_auc": "UA AUC",
    "deferral_auc": "deferral AUC",
    "risk_at_90": "errors among the 90 % that are most certain",
}
"""What a card keeps of a scorecard, and what it is called there."""

_FIELDS = ("attack", "target", "epsilon", "measure", "detail", "value", "low", "high", "n_records")
Result = dict[str, Any]


def published_results(scorecard: Scorecard, card: Mapping[str, Any]) -> dict[str, Any]:
    """What a scorecard says of the model that has this card, to be kept in it."""
    one = _the_same(scorecard, card)
    rows = [row for row in scorecard.find(ensemble=one.name) if row.target != MEMBERS and row.estimate]
    data = scorecard.data
    return {
        "source": data.source,
        "part": data.part,
        "data_hash": data.data,
        "same_cohort": one.same_cohort,
        "n_recordings": data.n_recordings,
        "unit": data.unit,
        "rows": [{name: getattr(row, name) for name in _FIELDS} for row in rows if row.measure in MEASURES],
    }


def _the_same(scorecard: Scorecard, card: Mapping[str, Any]) -> EnsembleFacts:
    """The ensemble with the card's weights; of several, the one of the card's strategy."""
    digest, strategy = card["weights_sha256"], parse_recipe(card["recipe"]).strategy
    found = [one for one in scorecard.ensembles if one.model == digest]
    if not found:
        raise BundleError(
            f"{card['name']}: expected a scorecard of its weights ({digest[:12]}...), found one of others"
        )
    return next((one for one in found if one.strategy == strategy), found[0])


def model_card(card: Mapping[str, Any]) -> str:
    """The whole card; parts that its bundle knows nothing about are left out."""
    recipe, names = parse_recipe(card["recipe"]), card.get("class_names", {})
    results = card.get("results")
    rows: list[Result] = results["rows"] if results else []
    natural = [row for row in rows if row["attack"] == NATURAL]
    by_class = [row for row in natural if row["measure"] == "f1"]
    weakest = min(by_class, key=lambda row: float(row["value"]), default=None)
    known = next((one for one in DATA_SETS.values() if one.title == card.get("data")), None)
    network = f"`{recipe.member.kind}` network"
    text = template("model_card.md.jinja").render(
        card=card,
        recipe=recipe,
        what=f"an ensemble of {len(card['members'])} {network}s" if len(card["members"]) > 1 else f"one {network}",
        classes=[f"{code} ({names[code]})" if names.get(code) else code for code in card["classes"]],
        rounding=_rounded_up(card["rounding_moved"]) if "rounding_moved" in card else "",
        hardened=recipe.training.attack_epsilon is not None,
        bands=_bands(recipe),
        terms=known.terms if known else "",
        results=results,
        n_tested=sum(results["n_recordings"].values()) if results else 0,
        natural=[(f"{MEASURES[row['measure']]} {row['detail']}".strip(), _shown(row)) for row in natural],
        attacked=list(_attacked(rows)),
        worst=_worst(rows, results["unit"] if results else ""),
        weakest=f"{weakest['detail']}: F1 {_shown(weakest)}" if weakest else "",
        risk=next((_shown(row) for row in natural if row["measure"] == "risk_at_90"), ""),
        ships=card["name"] in recipe_names() and known is not None,
        commands=list(_commands(card, recipe)),
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _attacked(rows: list[Result]) -> Iterator[tuple[str, int, str, str]]:
    attacked = [row for row in rows if row["attack"] != NATURAL and not row["attack"].startswith(MIXED)]
    by_place = {(row["attack"], row["target"], row["epsilon"], row["measure"]): row for row in attacked}
    for place in dict.fromkeys((row["attack"], row["target"], row["epsilon"]) for row in attacked):
        attack, target, epsilon = place
        accuracy, doubt = by_place.get((*place, "accuracy")), by_place.get((*place, "r_iu_auc"))
        if accuracy:
            what = attack if attack == WORST else f"{attack} on {target}"
            yield f"{what}, {epsilon:g}", accuracy["n_records"], _shown(accuracy), _shown(doubt) if doubt else "–"


def _worst(rows: list[Result], unit: str) -> str:
    """What is left under the weakest attack on the whole ensemble."""
    whole = [row for row in rows if row["target"] == "ensemble" and row["measure"] == "accuracy"]
    attacks = [row for row in whole if row["attack"] != WORST and not row["attack"].startswith(MIXED)]
    lowest = min(attacks, key=lambda row: (float(row["epsilon"]), float(row["value"])), default=None)
    if lowest is None:
        return ""
    return f"{lowest['attack']} of {lowest['epsilon']:g} ({unit}) on the ensemble leaves {_shown(lowest)} % right"


def _bands(recipe: Recipe) -> str:
    """What the members hear, where that is not what the paper's do."""
    if "part" not in recipe.parts or recipe.partition == PartitionRecipe():
        return ""
    heard = [recipe.bands_of(index) for index in range(recipe.members)]
    told = [one if isinstance(one, str) else " and ".join(f"{a:g}–{b:g} Hz" for a, b in one) for one in heard]
    return f"members hear {'; '.join(told)}, which is not the paper's partition"


def _commands(card: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    split = card.get("split", {})
    shares = {
        f"--{key.replace('_', '-')}": split[key] for key in ("test_ids", "tune_share", "test_share") if key in split
    }
    shares["--split-seed"] = split.get("seed", 0)
    options = " ".join(f"{name} {shlex.quote(str(value))}" for name, value in shares.items())
    yield f"ecgquorum cohort build SOURCE --rate {card['rate_hz']:g} {options} --out cohort"
    yield f"ecgquorum train {recipe.name} --strategy {recipe.strategy} --cohort cohort --out run"
    yield f"ecgquorum evaluate {card['name']} --cohort cohort --out scorecard.json"


def _rounded_up(value: float) -> str:
    if value <= 0:
        return "0"
    scale = 10.0 ** (1 - math.ceil(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.1g}"


def _shown(row: Result) -> str:
    return f"{100 * row['value']:.1f} ({100 * row['low']:.1f}–{100 * row['high']:.1f})"
