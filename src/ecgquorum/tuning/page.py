"""The page of a search: one HTML file that opens offline."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import norm

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.figure_style import inline_svg, render_figure
from ecgquorum.cohorts import Cohort
from ecgquorum.metrics import Estimate
from ecgquorum.recipes import EvaluationRecipe
from ecgquorum.report.templates import load_template
from ecgquorum.tuning.figures import draw_search
from ecgquorum.tuning.results import Trial, choose_trial, pareto_front, successful_trials
from ecgquorum.tuning.space import Choice, Parameter, Range, Space, Value
from ecgquorum.tuning.trial import ATTACKED, NATURAL

_DPI = 144
_WITHIN_95 = 2 * 1.96


def write_page(
    path: Path,
    trials: Sequence[Trial],
    space: Space,
    cohort: Cohort,
    evaluation: EvaluationRecipe,
    importances: dict[str, float],
) -> Path:
    """Write the page; return its path."""
    front, chosen = pareto_front(trials), choose_trial(trials)
    given = trials[0] if trials and trials[0].number == 0 and trials[0].measures else None
    shown = [*([given] if given and given not in front else []), *front]
    figures = {
        name: inline_svg(render_figure(figure, "svg", _DPI).decode(), name)
        for name, figure in draw_search(trials, space, importances).items()
    }
    page = load_template("search.html", "ecgquorum.tuning").render(
        figures=figures,
        recipe=space.given,
        source=cohort.card["source"],
        data_hash=cohort.data_hash,
        n_tune=len(cohort.part("tune")),
        n_attacked=min(evaluation.attacks[0].records or 0, len(cohort.part("tune"))),
        epsilon=f"{(evaluation.epsilons or (0.0,))[0]:g}",
        unit="µV" if space.given.input.scaling == "microvolt" else "of the lead's peak",
        trials=trials,
        failed=[trial for trial in trials if trial.reason],
        given=given,
        chosen=chosen,
        front={trial.number for trial in front},
        shown=shown,
        measures=((NATURAL, "natural"), (ATTACKED, "attacked")),
        further=(
            ("accuracy_under_attack_on_all", "all members attacked"),
            ("ua_auc", "UA, natural"),
            ("ua_auc_under_attack", "UA, attacked"),
            ("r_iu_auc", "R_iu, natural"),
            ("r_iu_auc_under_attack", "R_iu, attacked"),
        ),
        parameters=space.parameters,
        given_values=space.values_of(space.given),
        optimism={
            name: 100 * selection_bias([t.measures[name] for t in successful_trials(trials)])
            for name in (NATURAL, ATTACKED)
        },
        format_value=format_value,
        format_range=format_range,
    )
    write_atomic(path, page)
    return path


def selection_bias(estimates: Sequence[Estimate]) -> float:
    """Return how much better than it is the best trial looks on average, if all were equal with independent errors.

    The expected largest of n standard normals times the mean standard error. Trials are evaluated on the same
    recordings, so that their errors are correlated and the true bias is smaller.
    """
    if not estimates:
        return 0.0
    z = np.linspace(-8, 8, 4001)
    largest = np.trapezoid(z * len(estimates) * norm.pdf(z) * norm.cdf(z) ** (len(estimates) - 1), z)
    return float(largest) * float(np.mean([found.high - found.low for found in estimates])) / _WITHIN_95


def format_value(value: Value | None) -> str:
    """Return a parameter's value as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:.3g}"


def format_range(parameter: Parameter) -> str:
    """Return a parameter's range as text."""
    kind: Range | Choice = parameter.kind
    if isinstance(kind, Choice):
        return ", ".join(format_value(option) for option in kind.options)
    return f"{kind.low:.3g} to {kind.high:.3g}" + (", log" if kind.log else "") + (", whole" if kind.whole else "")
