"""What follows from a scorecard, in sentences: notes for the reader, and signs of gradient masking."""

from collections.abc import Iterator

from ecgquorum.evaluation.comparisons import group_by_strategy
from ecgquorum.evaluation.conditions import MASKING
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.published_results import PAPER_DATA, paper_data_set


def is_simulated(card: Scorecard) -> bool:
    """Whether the recordings are simulated."""
    return card.data.source.startswith("simulated")


def list_notes(card: Scorecard) -> list[str]:
    """What a reader must know before comparing results: warnings, then differences from the paper."""
    return [*_warnings(card), *_differences(card)]


def _warnings(card: Scorecard) -> Iterator[str]:
    data = card.data
    if data.part != "test":
        yield f"Evaluated on the {data.part} part, which was used to make choices: the results are too good."
    for one in card.ensembles:
        if not one.same_cohort:
            yield (
                f"{one.name} was trained on another cohort or another split of this one: it may have been trained on "
                "recordings that it is evaluated on here."
            )
    if paper_data_set(data.classes) and is_simulated(card):
        yield (
            "These recordings are simulated, the paper's are real: the differences from the paper's results mean "
            "nothing."
        )


def _differences(card: Scorecard) -> Iterator[str]:
    data, paper = card.data, PAPER_DATA.get(paper_data_set(card.data.classes) or "")
    if paper is None or is_simulated(card):
        return
    if data.n_records != paper.n_test:
        yield f"The paper was evaluated on {paper.n_test} other recordings, which alone may explain differences."
    if data.rate_hz != paper.rate_hz:
        yield (
            f"Recordings are sampled at {data.rate_hz:g} Hz, the paper's at {paper.rate_hz:g} Hz. The kernels of SAP "
            "are in samples, so it is smoother here."
        )
    if data.n_train:
        yield f"Members were trained on {data.n_train:,} recordings, the paper's on {paper.n_train:,}."
    networks = sorted({one.network for one in card.ensembles if one.network})
    if networks:
        yield f"Members here: {'; or '.join(networks)}. The paper's: 13 dilated blocks, 60 s windows, 80 epochs."
    others = {one.name: one.deviations for one in card.ensembles if one.deviations}
    if others:
        yield (
            f"Not trained in the paper's setting: {_describe_deviations(others)}. The paper's results stand beside "
            "theirs for orientation only."
        )
    yield (
        f"Uncertainty is normalised by {describe_normalisation(card)} (the paper: by its range on the natural test "
        "part). Attacks do not change padding. Exact duplicates were left out before the split."
    )
    if all(len(group.numbers) == 1 for group in group_by_strategy(card.ensembles)):
        yield "Intervals are over recordings, for one training of each strategy: another seed may differ by more."


def _describe_deviations(by_name: dict[str, tuple[str, ...]]) -> str:
    """How ensembles were not trained in the paper's setting: what they have in common, then what some have besides."""
    first, *rest = by_name.values()
    common = [text for text in first if all(text in deviations for deviations in rest)]
    besides = {name: [text for text in texts if text not in common] for name, texts in by_name.items()}
    parts = [", ".join(by_name) + (f" ({', '.join(common)})" if common else "")]
    return "; ".join([*parts, *(f"{name} also {', '.join(texts)}" for name, texts in besides.items() if texts)])


def describe_normalisation(card: Scorecard) -> str:
    """By which range uncertainty is normalised."""
    return {
        "training": "its range on the training part",
        "robust": "0 and its 99.9 % quantile on the training part",
    }.get(str(card.evaluation.get("normalise")), f"its range on the natural {card.data.part} part")


def masking_findings(card: Scorecard, ensemble: str) -> list[str]:
    """Signs of gradient masking beyond what the intervals allow; empty where there are none."""
    found = []
    rows = list(card.find(ensemble=ensemble, attack=MASKING))
    losses = [row.value for row in rows if row.metric == "loss" and row.value is not None]
    if losses and losses[-1] <= losses[0]:
        found.append("the loss does not rise with the steps")
    for row in rows:
        if row.metric == "advantage" and row.estimate and row.estimate.high < 0:
            knows, _, knows_less = row.detail.partition(" over ")
            found.append(f"{knows_less} makes more errors than {knows}")
        if row.metric == "zero_gradients" and row.value:
            found.append(f"{100 * row.value:.0f} % of recordings have no gradient")
    return found
