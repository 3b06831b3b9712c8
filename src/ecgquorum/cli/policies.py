"""Commands about policies of triage: policy fit, policy show; and the options about urgency."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import (
    ENSEMBLES,
    Bundle,
    Group,
    MemberName,
    app,
    folder_option,
    parse_number,
    parse_share,
    split_names,
)
from ecgquorum.cli.console import print_line

if TYPE_CHECKING:
    from ecgquorum.triage import Policy, Urgency

policy_app = typer.Typer(
    cls=Group, help="Policies that say which recordings a person should read: fit and show.", no_args_is_help=True
)
app.add_typer(policy_app, name="policy", rich_help_panel=ENSEMBLES)

Urgent = Annotated[
    str | None,
    typer.Option(help="Urgent classes, the most urgent first: STE,AF. They are at the top; in windows they defer."),
]
Always = Annotated[str | None, typer.Option(help="Classes that always go to a person: STE.")]
Never = Annotated[
    str | None, typer.Option(help="Classes that never go to a person, unless quality, windows or the floor say so.")
]
Floor = Annotated[
    str | None, typer.Option(help="A class of a smaller calibrated probability is never called certain: 0.5.")
]


def change_urgency(
    urgency: "Urgency", urgent: str | None, always: str | None, never: str | None, floor: str | None
) -> "Urgency":
    """The rules with what the options say instead."""
    given = {"urgent": urgent, "always": always, "never": never}
    changed = {name: split_names(text) for name, text in given.items() if text is not None}
    share = parse_share("--floor", floor)
    return replace(urgency, **changed, floor=urgency.floor if share is None else share)


@policy_app.command("fit")
def policy_fit(
    model: Bundle,
    cohort: Annotated[str, typer.Option(help="The cohort, a folder or a URL; the policy is fitted on its tune part.")],
    out: Annotated[Path, folder_option("New folder for the bundle with the policy in its card.")],
    kind: Annotated[str, typer.Option(help="threshold, budget, cost or conformal.")] = "budget",
    value: Annotated[
        str | None,
        typer.Option(
            help="The threshold, the share read by people, the cost of a review, or the error rate of sets: 10%."
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(help='JSON file of error costs, {"A": {"N": 10}}: answering N where A is true costs 10.'),
    ] = None,
    score: Annotated[
        str, typer.Option(help="The uncertainty score to use: risk, confidence, mutual_information, distance, ...")
    ] = "risk",
    urgent: Urgent = None,
    always: Always = None,
    never: Never = None,
    floor: Floor = None,
    member: MemberName = None,
) -> None:
    """Fit a policy on the tune part and write a copy of the bundle with the policy in its card."""
    from ecgquorum import Cohort, load_ensemble
    from ecgquorum.ensemble.bundle import add_to_card
    from ecgquorum.triage import KINDS, fit_policy, read_costs, urgency_of

    number = KINDS.get(kind, 0.0) if value is None else parse_number("--value", value)
    ensemble = load_ensemble(model, member=member)
    urgency = change_urgency(urgency_of(ensemble), urgent, always, never, floor)
    urgency.check(ensemble.classes)
    policy = fit_policy(ensemble, Cohort(cohort), kind, number, read_costs(costs) if costs else None, score)
    policy = replace(policy, urgency=urgency)
    add_to_card(model, out, {"policy": policy.card()})
    print_line(f"{out}: {_describe(policy)}")


@policy_app.command("show")
def policy_show(
    model: Bundle,
) -> None:
    """Show a bundle's policy, its urgency, and what it would have done on the tune part, a sentence each."""
    from ecgquorum import read_card
    from ecgquorum.triage import policy_from

    card = read_card(model)
    policy = policy_from(card["policy"]) if "policy" in card else None
    print_line(_describe(policy) if policy else f"{model} has no policy; fit one with: ecgquorum policy fit")


def _describe(policy: "Policy") -> str:
    return " ".join(one.sentence() for one in (policy, policy.urgency, policy.tune) if one is not None)
