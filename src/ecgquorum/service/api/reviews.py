"""Routes of reviews: claim a case, give a verdict, release the case."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId, error_responses
from ecgquorum.service.store import reviews
from ecgquorum.service.views import Case, make_case, visible_row

router = APIRouter(prefix="/api/recordings/{id}", tags=["reviews"])


class NewVerdict(BaseModel):
    """A class of the model."""

    label: str = Field(min_length=1, max_length=100)


@router.put("/claim", responses=error_responses(404, 409))
def claim(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002 (the name in the path)
    """Claim the case, or extend the claim; a case that another reader holds is refused."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        reviews.claim_case(session, row, desk.reviewer(who))
        return make_case(session, desk, who, row)


@router.delete("/claim", responses=error_responses(404))
def release(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002
    """Release the case."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        reviews.release_case(session, row, desk.reviewer(who))
        return make_case(session, desk, who, row)


@router.post("/verdicts", status_code=201, responses=error_responses(404, 409))
def judge(id: RecordingId, verdict: NewVerdict, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002
    """Give a verdict on a claimed case. With blind first, the ensemble's result is shown after the first verdict."""
    with desk.store.write_session() as session:
        row = visible_row(session, who, id)
        reviews.add_verdict(session, row, desk.reviewer(who), verdict.label, desk.classes)
        return make_case(session, desk, who, row)
