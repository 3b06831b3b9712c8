"""Signs that a defence hides its gradients instead of being robust, in words."""

from itertools import pairwise

from ecgquorum.evaluation.conditions import MASKING
from ecgquorum.evaluation.measures import Estimate
from ecgquorum.evaluation.scorecard import Scorecard


def signs_of_masking(card: Scorecard, ensemble: str) -> list[str]:
    """What speaks for hidden gradients, beyond what the intervals allow; empty where nothing does."""

    def found(measure: str, detail: str = "") -> Estimate | None:
        return card.estimate(ensemble=ensemble, attack=MASKING, measure=measure, detail=detail)

    signs = []
    losses = [row for row in card.find(ensemble=ensemble, attack=MASKING, measure="loss") if row.estimate]
    first, last = (losses[place].estimate if losses else None for place in (0, -1))
    if first and last and last.value <= first.value:
        signs.append("the loss does not rise with the steps")
    order = ("white box", "transfer", "black box")
    for stronger, weaker in pairwise(order):
        more, less = found("error_rate", stronger), found("error_rate", weaker)
        if more and less and less.low > more.high:
            signs.append(f"{weaker} does better than {stronger}")
    zero = found("zero_gradients")
    if zero and zero.value > 0:
        signs.append(f"{100 * zero.value:.0f} % of recordings have no gradient")
    return signs
