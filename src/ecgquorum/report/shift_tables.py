"""Tables about corruptions and recordings out of distribution."""

from ecgquorum.evaluation.comparisons import COMPARED_SCORES
from ecgquorum.evaluation.conditions import ALL_CORRUPTIONS, CORRUPTION, NATURAL, OOD
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.metrics import Estimate
from ecgquorum.report.report_table import ReportTable, TableCell

SHOWN_SCORES = ("confidence", "mutual_information", "distance", "risk")
"""Scores that tables of several ensembles show; all are in all_rows.csv."""


def list_families(card: Scorecard, target: str) -> dict[str, list[float]]:
    """Corruptions, or sets out of distribution, in their order -> the severities that were evaluated."""
    found: dict[str, list[float]] = {}
    for condition in card.conditions:
        if condition.target == target:
            found.setdefault(condition.attack, []).append(condition.epsilon)
    return {name: sorted(severities) for name, severities in found.items()}


def build_shift_tables(card: Scorecard) -> list[ReportTable]:
    """Build every table about corruptions and recordings out of distribution."""
    return [
        _summary_table(card),
        _comparison_table(card),
        _accuracy_table(card),
        _score_table(card),
        _calibration_table(card),
        _class_table(card),
        _ood_table(card, "ood_auroc", "ood", "Out of distribution: AUROC against natural recordings (%)"),
        _ood_table(
            card, "ood_fpr_at_95", "ood_fpr", "Out of distribution: accepted where 95 % of natural ones are (%)"
        ),
    ]


def _summary_table(card: Scorecard) -> ReportTable:
    """All corruptions together, one row for each ensemble."""
    of_all = {"attack": ALL_CORRUPTIONS, "target": CORRUPTION}
    columns = [
        ("natural", "accuracy", {"attack": NATURAL, "target": "", "metric": "accuracy", "detail": ""}),
        ("all corruptions", "accuracy", of_all | {"metric": "accuracy"}),
        ("all corruptions", "mean corruption error", of_all | {"metric": "mean_corruption_error"}),
        ("all corruptions", "relative corruption error", of_all | {"metric": "relative_corruption_error"}),
        *(
            ("AUGRC, all corruptions", f"by {score.replace('_', ' ')}", of_all | {"metric": "augrc", "detail": score})
            for score in SHOWN_SCORES
        ),
    ]
    rows = [
        (one.name, tuple(_cell(card, ensemble=one.name, **wanted) for _, _, wanted in columns))
        for one in card.ensembles
        if any(card.find(ensemble=one.name, **of_all))
    ]
    reference = next((row.detail for row in card.find(metric="mean_corruption_error")), "")
    sizes = sorted({row.n_records for row in card.find(metric="accuracy", **of_all)})
    counts = f" Corrupted were {' or '.join(map(str, sizes))} of the {card.data.n_records} natural recordings."
    note = (
        "Means over severities, then over corruptions. Corruption errors are relative to those of "
        f"{reference} (100 %): the mean over corruptions of the quotient of error rates, and the quotient of the "
        "accuracies lost against the same recordings when they are natural. AUGRC: lower is better."
        + (counts if sizes != [card.data.n_records] else "")
    )
    headings = tuple((heading, label) for heading, label, _ in columns)
    return ReportTable("corruption_summary", "All corruptions together (%)", note, headings, tuple(rows))


def _comparison_table(card: Scorecard) -> ReportTable:
    """Paired differences between strategies, over all corruptions and under each at its highest severity."""
    worst = {name: severities[-1] for name, severities in list_families(card, CORRUPTION).items()}
    columns = [
        (ALL_CORRUPTIONS, 0.0, "accuracy", ("all corruptions", "accuracy")),
        *(
            (ALL_CORRUPTIONS, 0.0, f"augrc_{score}", ("all corruptions", f"AUGRC by {score.replace('_', ' ')}"))
            for score in COMPARED_SCORES
        ),
        *((name, severity, "accuracy", ("accuracy at the highest severity", name)) for name, severity in worst.items()),
    ]
    found = {
        (one.first, one.second, one.attack, one.epsilon, one.metric): one.difference
        for one in card.comparisons
        if one.target == CORRUPTION
    }
    rows = []
    for first, second in dict.fromkeys(key[:2] for key in found):
        differences = [found.get((first, second, attack, epsilon, metric)) for attack, epsilon, metric, _ in columns]
        cells = (TableCell(Estimate(*one).times(100) if one else None, reason="not compared") for one in differences)
        rows.append((f"{' and '.join(first)} less {' and '.join(second)}", tuple(cells)))
    note = "The same recordings, corrupted alike, for both: the interval is that of the difference (paired bootstrap)."
    headings = tuple(heading for *_, heading in columns)
    title = "Differences between strategies under corruptions (percentage points)"
    return ReportTable("corruption_differences", title, note, headings, tuple(rows))


def _accuracy_table(card: Scorecard) -> ReportTable:
    """One row for each corruption, one column for each severity of each ensemble."""
    families = list_families(card, CORRUPTION)
    severities = sorted({severity for several in families.values() for severity in several})
    columns = [(one.name, severity) for one in card.ensembles for severity in severities]
    rows = tuple(
        (name, tuple(_cell(card, ensemble=one, epsilon=severity, **_of(name, "accuracy")) for one, severity in columns))
        for name in families
    )
    headings = tuple((one, f"severity {severity:g}") for one, severity in columns)
    return ReportTable("corruption_accuracy", "Accuracy under corruptions (%)", _describe_counts(card), headings, rows)


def _score_table(card: Scorecard) -> ReportTable:
    """AUROC of errors by each score, at the highest severity."""
    families = list_families(card, CORRUPTION)
    columns = [(one.name, score) for one in card.ensembles for score in SHOWN_SCORES]
    rows = tuple(
        (
            name,
            tuple(
                _cell(card, ensemble=one, epsilon=severities[-1], **_of(name, "error_auroc", score))
                for one, score in columns
            ),
        )
        for name, severities in families.items()
    )
    headings = tuple((one, score.replace("_", " ")) for one, score in columns)
    title = "Errors found by each score under corruptions at the highest severity (% AUROC)"
    note = "50: no better than chance. AURC and AUROC of every score at every severity are in all_rows.csv."
    return ReportTable("corruption_scores", title, note, headings, rows)


def _calibration_table(card: Scorecard) -> ReportTable:
    """ECE and coverage of prediction sets at the highest severity, natural first."""
    families = list_families(card, CORRUPTION)
    kinds = (("ece", "", "ECE"), ("conformal_coverage", "90 %", "coverage of 90 % sets"))
    columns = [(one.name, *kind) for one in card.ensembles for kind in kinds]
    places = [(NATURAL, "", 0.0), *((name, CORRUPTION, several[-1]) for name, several in families.items())]
    rows = tuple(
        (
            attack,
            tuple(
                _cell(card, ensemble=one, attack=attack, target=target, epsilon=severity, metric=metric, detail=detail)
                for one, metric, detail, _ in columns
            ),
        )
        for attack, target, severity in places
        if families
    )
    headings = tuple((one, label) for one, *_, label in columns)
    note = (
        "Prediction sets are fitted on natural recordings, those of each half on the other, and hold the true class of "
        "natural ones with a probability of at least 90 %."
    )
    title = "Calibration and prediction sets under corruptions at the highest severity (%)"
    return ReportTable("corruption_calibration", title, note, headings, rows)


def _class_table(card: Scorecard) -> ReportTable:
    """What is predicted at the highest severity, natural first."""
    families, classes = list_families(card, CORRUPTION), card.data.classes
    columns = [(one.name, label) for one in card.ensembles for label in classes]
    places = [(NATURAL, "", 0.0), *((name, CORRUPTION, several[-1]) for name, several in families.items())]
    rows = tuple(
        (
            attack,
            tuple(
                _cell(card, ensemble=one, epsilon=severity, **_of(attack, "predicted_share", label, target))
                for one, label in columns
            ),
        )
        for attack, target, severity in places
        if families
    )
    noise = (
        " A recording that is disturbed so much that it is called noise (~) counts as an error, although a person "
        "might say the same."
    )
    return ReportTable(
        "corruption_classes",
        "Predicted classes under corruptions at the highest severity (% of recordings)",
        "Equal rows mean that the corruption decides the answer." + (noise if "~" in classes else ""),
        tuple(columns),
        rows,
    )


def _ood_table(card: Scorecard, metric: str, name: str, title: str) -> ReportTable:
    columns = [(one.name, score) for one in card.ensembles for score in SHOWN_SCORES]
    rows = tuple(
        (kind, tuple(_cell(card, ensemble=one, **_of(kind, metric, score, OOD)) for one, score in columns))
        for kind in list_families(card, OOD)
    )
    headings = tuple((one, score.replace("_", " ")) for one, score in columns)
    note = "Every recording against the natural one that it stands for. Below 50: taken for more certain than an ECG."
    return ReportTable(name, title, note if metric == "ood_auroc" else "Lower is better.", headings, rows)


def _of(attack: str, metric: str, detail: str = "", target: str = CORRUPTION) -> dict[str, str]:
    return {"attack": attack, "target": target, "metric": metric, "detail": detail}


def _cell(card: Scorecard, **wanted: object) -> TableCell:
    row = next(card.find(**wanted), None)
    if row is None:
        return TableCell(None, reason="not evaluated")
    return TableCell(row.estimate.times(100) if row.estimate else None, reason=row.reason)


def _describe_counts(card: Scorecard) -> str:
    sizes = sorted({row.n_records for row in card.find(target=CORRUPTION, metric="accuracy")})
    return f"On {' or '.join(map(str, sizes))} recordings. A corruption that is there or not has one severity."
