"""A model card in Markdown, written from a bundle's `card.json`."""

from collections.abc import Iterator, Mapping
from typing import Any

from ecgquorum.cohorts.fetch import DATA_SETS
from ecgquorum.evaluation.conditions import MEMBERS, NATURAL, WORST
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.recipe import parse_recipe

PUBLISHED_MEASURES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "ece": "ECE, raw probabilities",
    "ece_calibrated": "ECE, calibrated",
    "brier": "Brier, raw probabilities",
    "brier_calibrated": "Brier, calibrated",
    "r_cc_auc": "R_cc AUC",
    "r_iu_auc": "R_iu AUC",
    "ua_auc": "UA AUC",
    "deferral_auc": "deferral AUC",
    "risk_at_90": "errors among the 90 % most certain",
    "f1": "F1",
}
_NOT_FOR = (
    "Research only. **Not a medical device**: not for diagnosis, screening, monitoring or any decision about a person's "
    "care. The classes are those of one data set, made by its own readers under its own rules; an ECG that shows something "
    "else is still given one of them."
)


def published_results(card: Scorecard, model: str) -> dict[str, Any]:
    """What a scorecard says of the model with these weights, to be kept in its card."""
    rows = [
        {
            "attack": row.attack,
            "target": row.target,
            "epsilon": row.epsilon,
            "measure": row.measure,
            "detail": row.detail,
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "n_records": row.n_records,
        }
        for row in card.rows
        if row.model == model and row.target != MEMBERS and row.measure in PUBLISHED_MEASURES and row.value is not None
    ]
    data = card.data
    return {
        "source": data.source,
        "part": data.part,
        "data_hash": data.data,
        "n_recordings": data.n_recordings,
        "unit": data.unit,
        "rows": rows,
    }


def model_card(card: Mapping[str, Any]) -> str:
    """The whole card; without results where none were added to it."""
    parts = [_head(card), _use(card), _data(card), _results(card), _failures(card), _retraining(card)]
    return "\n".join(part for part in parts if part)


def _head(card: Mapping[str, Any]) -> str:
    recipe = parse_recipe(card["recipe"])
    names = card.get("class_names", {})
    classes = ", ".join(f"{code} ({names[code]})" if names.get(code) else code for code in card["classes"])
    size = f"{card.get('precision', 'single')} precision"
    if "rounding_moved" in card:
        size += f" (rounding moved no member's probability on the tune part by more than {card['rounding_moved']:.1g})"
    return "\n".join(
        [
            f"# {card['name']}",
            "",
            "*Written by `ecgquorum card` from the bundle's card.json; do not edit it here.*",
            "",
            f"- **What it is**: an ensemble of {card['members']} `{recipe.member.kind}` networks, trained by the strategy "
            f"`{recipe.strategy}`; weights in {size}.",
            f"- **Input**: leads {', '.join(card['leads'])} at {card['rate_hz']:g} Hz, scaled to {card['scaling']}, windows "
            f"of {card['window_s']:g} s; `ecgquorum predict` brings recordings of other rates, units and lengths to that.",
            f"- **Output**: probabilities of {classes}; the same calibrated (temperature {card['temperature']:.3f}, fitted "
            "on the tune part); every member's own; mutual information, and it normalised by its range on the training "
            "part.",
            f"- **Weights** SHA-256 `{card['weights_sha256']}`, seed {card['seed']}, code "
            f"`{str(card.get('git_commit'))[:12]}`, PyTorch {card['versions']['torch']}.",
            "",
        ]
    )


def _use(card: Mapping[str, Any]) -> str:
    purpose = (
        "Studying disagreement, robustness and deferral of ECG classifiers; a baseline to compare with; trying out "
        "`ecgquorum` on recordings of the same kind."
    )
    return f"## Intended use\n\n{purpose}\n\n{_NOT_FOR}\n"


def _data(card: Mapping[str, Any]) -> str:
    counts = card["n_recordings"]
    known = DATA_SETS.get(card["data"])
    terms = f" Terms of the data: {known.terms}." if known else ""
    split = card.get("split", {})
    fixed = f"the test part is the list `{split['test_ids']}`" if "test_ids" in split else "the test part was drawn too"
    return (
        f"## Data\n\n{card['data']}: {counts['train']} recordings to train on, {counts['tune']} to tune on, "
        f"{counts['test']} to test on; the tune part was drawn with seed {split.get('seed', 0)}, {fixed}. Data hash "
        f"`{card['data_hash']}`.{terms} The weights are ours and carry the licence of this software; the data sets ask to "
        f"be named.\n\nAccuracy on the tune part: {100 * card['tune_accuracy']:.1f} % (checkpoints were chosen on it).\n"
    )


def _results(card: Mapping[str, Any]) -> str:
    results = card.get("results")
    if not results:
        return ""
    lines = [
        "## Results",
        "",
        f"On the {results['part']} part of {results['source']}, {sum(results['n_recordings'].values())} recordings, in per "
        "cent with 95 % intervals.",
        "",
        "| natural recordings | |",
        "| --- | ---: |",
    ]
    natural = [row for row in results["rows"] if row["attack"] == NATURAL]
    for row in natural:
        name = PUBLISHED_MEASURES[row["measure"]]
        lines.append(f"| {name}{' ' + row['detail'] if row['detail'] else ''} | {_shown(row)} |")
    lines += ["", f"| attacked, ε in {results['unit']} | recordings | accuracy | R_iu AUC |", "| --- | ---: | ---: | ---: |"]
    lines += list(_attacked(results["rows"]))
    return "\n".join(lines) + "\n"


def _attacked(rows: list[dict[str, Any]]) -> Iterator[str]:
    plain = [row for row in rows if row["attack"] != NATURAL and not row["attack"].startswith("mixed")]
    by_place = {(row["attack"], row["target"], row["epsilon"], row["measure"]): row for row in plain}
    for attack, target, epsilon in dict.fromkeys((r["attack"], r["target"], r["epsilon"]) for r in plain):
        found = by_place.get((attack, target, epsilon, "accuracy"))
        if found:
            doubt = by_place.get((attack, target, epsilon, "r_iu_auc"))
            what = attack if attack == WORST else f"{attack} on {target}"
            doubted = _shown(doubt) if doubt else "–"
            yield f"| {what}, {epsilon:g} | {found['n_records']} | {_shown(found)} | {doubted} |"


def _failures(card: Mapping[str, Any]) -> str:
    results = card.get("results")
    lines = [
        "- An attacker who knows all members is not stopped by their disagreement; see the rows on the ensemble above."
        if results
        else "- It has not been put to the test: its card holds no results.",
        "- Recordings of other devices, populations, leads or filters may be answered wrongly and with confidence; "
        "uncertainty here is disagreement, and members can agree on a mistake.",
    ]
    if results:
        by_class = [r for r in results["rows"] if r["attack"] == NATURAL and r["measure"] == "f1"]
        if by_class:
            worst = min(by_class, key=lambda row: row["value"])
            count = results["n_recordings"].get(worst["detail"], 0)
            lines.append(f"- Its weakest class is {worst['detail']}: F1 {_shown(worst)} on {count} recordings.")
        risk = next((r for r in results["rows"] if r["attack"] == NATURAL and r["measure"] == "risk_at_90"), None)
        if risk:
            lines.append(
                f"- When the tenth that it doubts most is read by people, {_shown(risk)} % of the rest is still wrong."
            )
    return "\n".join(["## Known failures", "", *lines, ""])


def _retraining(card: Mapping[str, Any]) -> str:
    recipe = parse_recipe(card["recipe"])
    fixed = card.get("split", {}).get("test_ids")
    build = f"ecgquorum cohort build data/{card['data']} --out cohort" + (f" --test-ids {fixed}" if fixed else "")
    commands = [
        build,
        f"ecgquorum train {recipe.name} --strategy {recipe.strategy} --cohort cohort --out run",
        f"ecgquorum evaluate {card['name']} --cohort cohort --out scorecard.json",
    ]
    if card["data"] in DATA_SETS:
        commands.insert(0, f"ecgquorum cohort fetch {card['data']}")
    text = "To train it again, and to put these weights to the test again:"
    return "\n".join(["## Once more", "", text, "", "```console", *commands, "```", ""])


def _shown(row: Mapping[str, Any]) -> str:
    return f"{100 * row['value']:.1f} ({100 * row['low']:.1f}–{100 * row['high']:.1f})"
