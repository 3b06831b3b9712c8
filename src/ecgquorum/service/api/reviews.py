"""Routes of reviews: claim a case, give a verdict, withdraw it, release the case, reopen it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId, error_responses
from ecgquorum.service.identity import AUTOMATIC_HEADER
from ecgquorum.service.store import models, reviews
from ecgquorum.service.store.judgements import MAX_COMMENT, make_judgement
from ecgquorum.service.views import Case, make_case, visible_row

router = APIRouter(prefix="/api/recordings/{id}", tags=["reviews"])


class NewVerdict(BaseModel):
    """One class (`label`), several (`labels`), or the kind `none` (of these) or `unclear` (cannot tell).

    stage: refuse it as a verdict of the other stage, such as a first verdict that is sent twice
    """

    label: str | None = Field(default=None, min_length=1, max_length=100)
    labels: list[Annotated[str, Field(max_length=100)]] = Field(default=[], max_length=100)
    kind: Literal["class", "classes", "none", "unclear"] = "class"
    comment: str = Field(default="", max_length=MAX_COMMENT)
    stage: Literal["first", "final"] | None = None


class Reason(BaseModel):
    """Why, for the audit log."""

    reason: str = Field(min_length=1, max_length=500)


@router.put("/claim", responses=error_responses(404, 409))
def claim(id: RecordingId, request: Request, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002 (in the path)
    """Claim the case, or extend the claim; a case that another reader holds is refused."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        reviews.claim_case(session, row, desk.reviewer(who), automatic=AUTOMATIC_HEADER in request.headers)
        return make_case(session, desk, who, row)


@router.delete("/claim", responses=error_responses(404))
def release(id: RecordingId, desk: CurrentDesk, who: CurrentActor, skip: bool = False) -> Case:  # noqa: A002
    """Release the case; `skip`: it was looked at and left to another reader."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        reviews.release_case(session, row, desk.reviewer(who), "skipped" if skip else "released")
        return make_case(session, desk, who, row)


@router.post("/verdicts", status_code=201, responses=error_responses(404, 409))
def judge(id: RecordingId, verdict: NewVerdict, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002
    """Give a verdict on a claimed case. With blind first, the ensemble's result is shown after the first verdict."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        classes = models.classes_of(session, reviews.latest_result(session, row.id))[0] if row.classified_at else ()
        labels = [verdict.label, *verdict.labels] if verdict.label else verdict.labels
        judgement = make_judgement(labels, verdict.kind, verdict.comment, classes)
        reviews.add_verdict(session, row, desk.reviewer(who), judgement, desk.second_reading, verdict.stage)
        return make_case(session, desk, who, row)


@router.delete("/verdicts", responses=error_responses(404, 409))
def withdraw(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002
    """Withdraw your final verdict, within some seconds; the case is open again and claimed by you."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        reviews.withdraw_verdict(session, row, desk.reviewer(who))
        return make_case(session, desk, who, row)


@router.post("/reopen", responses=error_responses(404, 409))
def reopen(id: RecordingId, why: Reason, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002
    """Open a closed case for a new round of verdicts; the reason is in the audit log."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        reviews.reopen_case(session, row, desk.store.now(), who.name, why.reason)
        return make_case(session, desk, who, row)
