"""Reviews: claim a case, say what it is, give it back."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from ecgquorum.service.api.dependencies import RecordingId, ThisDesk, Who, refusals
from ecgquorum.service.store import reviews
from ecgquorum.service.views import Case, case_of, row_for

router = APIRouter(prefix="/api/recordings/{id}", tags=["reviews"])


class NewVerdict(BaseModel):
    """A class of the model."""

    label: str = Field(min_length=1, max_length=100)


@router.put("/claim", responses=refusals(404, 409))
def claim(id: RecordingId, desk: ThisDesk, who: Who) -> Case:  # noqa: A002 (the path's word)
    """Lock the case for a while, or for a while longer; another reader's claim refuses it."""
    with desk.store.writing() as session:
        row = row_for(session, who, id)
        reviews.claim(session, row, desk.reviewer(who))
        return case_of(session, desk, who, row)


@router.delete("/claim", responses=refusals(404))
def release(id: RecordingId, desk: ThisDesk, who: Who) -> Case:  # noqa: A002
    """Give the case back."""
    with desk.store.writing() as session:
        row = row_for(session, who, id)
        reviews.release(session, row, desk.reviewer(who))
        return case_of(session, desk, who, row)


@router.post("/verdicts", status_code=201, responses=refusals(404, 409))
def judge(id: RecordingId, verdict: NewVerdict, desk: ThisDesk, who: Who) -> Case:  # noqa: A002
    """Say what a claimed case is. Blind first, the first verdict uncovers the ensemble's answer; the next is final."""
    with desk.store.writing() as session:
        row = row_for(session, who, id)
        reviews.judge(session, row, desk.reviewer(who), verdict.label, desk.classes)
        return case_of(session, desk, who, row)
