"""Signs that a defence hides its gradients instead of being robust, in words."""

from ecgquorum.evaluation.conditions import MASKING
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.metrics.measures import Estimate


def masking_findings(card: Scorecard, ensemble: str) -> list[str]:
    """What speaks for hidden gradients, beyond what the intervals allow; empty where nothing does."""

    def found(measure: str, detail: str = "") -> Estimate | None:
        return card.estimate(ensemble=ensemble, attack=MASKING, measure=measure, detail=detail)

    signs = []
    losses = [row for row in card.find(ensemble=ensemble, attack=MASKING, measure="loss") if row.estimate]
    first, last = (losses[place].estimate if losses else None for place in (0, -1))
    if first and last and last.value <= first.value:
        signs.append("the loss does not rise with the steps")
    for row in card.find(ensemble=ensemble, attack=MASKING, measure="advantage"):
        knows, _, knows_less = row.detail.partition(" over ")
        if row.estimate and row.estimate.high < 0:
            signs.append(f"{knows_less} does better than {knows}")
    zero = found("zero_gradients")
    if zero and zero.value > 0:
        signs.append(f"{100 * zero.value:.0f} % of recordings have no gradient")
    return signs
