"""A model card in Markdown, written from a bundle's `card.json`."""

from collections.abc import Iterator, Mapping
from typing import Any

from ecgquorum.cohorts.fetch import DATA_SETS
from ecgquorum.evaluation.conditions import MEMBERS, MIXED, NATURAL, WORST
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.recipe import parse_recipe
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


def published_results(card: Scorecard, model: str) -> dict[str, Any]:
    """What a scorecard says of the model with these weights, to be kept in its card."""
    rows = [row for row in card.rows if row.model == model and row.target != MEMBERS and row.estimate]
    return {
        "source": card.data.source,
        "part": card.data.part,
        "data_hash": card.data.data,
        "n_recordings": card.data.n_recordings,
        "unit": card.data.unit,
        "rows": [{name: getattr(row, name) for name in _FIELDS} for row in rows if row.measure in MEASURES],
    }


def model_card(card: Mapping[str, Any]) -> str:
    """The whole card; without results where none were added to it."""
    recipe, names = parse_recipe(card["recipe"]), card.get("class_names", {})
    results = card.get("results")
    rows: list[Result] = results["rows"] if results else []
    natural = [row for row in rows if row["attack"] == NATURAL]
    by_class = [row for row in natural if row["measure"] == "f1"]
    weakest = min(by_class, key=lambda row: float(row["value"])) if by_class else None
    known = next((one for one in DATA_SETS.values() if one.title == card["data"]), None)
    return template("model_card.md.jinja").render(
        card={"precision": None, "split": {"seed": 0}, "temperature": 1.0} | dict(card),
        recipe=recipe,
        classes=[f"{code} ({names[code]})" if names.get(code) else code for code in card["classes"]],
        terms=known.terms if known else "",
        hardened=recipe.training.attacked > 0,
        results=results,
        n_tested=sum(results["n_recordings"].values()) if results else 0,
        natural=[(f"{MEASURES[row['measure']]} {row['detail']}".strip(), _shown(row)) for row in natural],
        attacked=list(_attacked(rows)),
        weakest=weakest,
        weakest_shown=_shown(weakest) if weakest else "",
        risk=next((_shown(row) for row in natural if row["measure"] == "risk_at_90"), ""),
        commands=_commands(card, recipe.name, recipe.strategy),
    )


def _attacked(rows: list[Result]) -> Iterator[tuple[str, int, str, str]]:
    attacked = [row for row in rows if row["attack"] != NATURAL and not row["attack"].startswith(MIXED)]
    by_place = {(row["attack"], row["target"], row["epsilon"], row["measure"]): row for row in attacked}
    for place in dict.fromkeys((row["attack"], row["target"], row["epsilon"]) for row in attacked):
        attack, target, epsilon = place
        accuracy, doubt = by_place.get((*place, "accuracy")), by_place.get((*place, "r_iu_auc"))
        if accuracy:
            what = attack if attack == WORST else f"{attack} on {target}"
            yield f"{what}, {epsilon:g}", accuracy["n_records"], _shown(accuracy), _shown(doubt) if doubt else "–"


def _commands(card: Mapping[str, Any], recipe: str, strategy: str) -> Iterator[str]:
    fetched = next((name for name, one in DATA_SETS.items() if one.title == card["data"]), None)
    fixed = card.get("split", {}).get("test_ids")
    if fetched:
        yield f"ecgquorum cohort fetch {fetched} --out data"
    yield f"ecgquorum cohort build data{f' --test-ids {fixed}' if fixed else ''} --out cohort"
    yield f"ecgquorum train {recipe} --strategy {strategy} --cohort cohort --out run"
    yield f"ecgquorum evaluate {card['name']} --cohort cohort --out scorecard.json"


def _shown(row: Result) -> str:
    return f"{100 * row['value']:.1f} ({100 * row['low']:.1f}–{100 * row['high']:.1f})"
