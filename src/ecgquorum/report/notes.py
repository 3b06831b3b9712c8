"""What a reader of a scorecard must know before comparing anything in it, in sentences."""

from collections.abc import Iterator

from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.published_results import PAPER_DATA, published_data


def is_simulated(card: Scorecard) -> bool:
    """Whether the recordings are made up."""
    return card.data.source.startswith("simulated")


def notes_of(card: Scorecard) -> list[str]:
    """Warnings first, then how this differs from the paper."""
    return [*_warnings(card), *_differences(card)]


def _warnings(card: Scorecard) -> Iterator[str]:
    data = card.data
    if data.part != "test":
        yield f"Measured on the {data.part} part, on which choices are made: too good, not a result."
    for one in card.ensembles:
        if not one.same_cohort:
            yield (
                f"{one.name} was not trained on this cohort, or on another split of it: recordings tested on here may "
                "have been trained on."
            )
    if published_data(data.classes) and is_simulated(card):
        yield (
            "These recordings are simulated. The paper's figures are of real ones and stand here to show where they "
            "will stand: the differences mean nothing."
        )


def _differences(card: Scorecard) -> Iterator[str]:
    data, paper = card.data, PAPER_DATA.get(published_data(card.data.classes) or "")
    if paper is None or is_simulated(card):
        return
    if data.n_records != paper.n_test:
        yield f"These are other recordings than the paper's {paper.n_test}: differences may come from that alone."
    if data.rate_hz != paper.rate_hz:
        yield (
            f"Recordings are at {data.rate_hz:g} Hz, the paper's at {paper.rate_hz:g}: the smooth attack, of kernels "
            "in samples, is another one here."
        )
    if data.n_train:
        yield f"Members were trained on {data.n_train:,} recordings, the paper's on {paper.n_train:,}."
    networks = sorted({one.network for one in card.ensembles if one.network})
    if networks:
        yield f"Members here: {'; '.join(networks)}. The paper's: 13 dilated blocks, trained on clean recordings."
    normalised = "training part" if card.evaluation.get("normalise") == "training" else f"{data.part} part"
    yield (
        f"Uncertainty is normalised by its range on the {normalised} (the paper: on the test part); attacks never "
        "touch padding; exact duplicates were left out before the split."
    )
    yield "Intervals are over recordings, for one training of each strategy: another seed may differ by more."
