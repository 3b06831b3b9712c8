"""What each member looked at."""

from fastapi import APIRouter

from ecgquorum.service.api.dependencies import RecordingId, ThisDesk, Who, refusals
from ecgquorum.service.http_errors import Conflict
from ecgquorum.service.maps import Maps, maps_of
from ecgquorum.service.store import reviews
from ecgquorum.service.views import row_for

router = APIRouter(prefix="/api/recordings/{id}", tags=["recordings"])


@router.get("/maps", responses=refusals(404, 409))
def maps(id: RecordingId, desk: ThisDesk, who: Who) -> Maps:  # noqa: A002 (the path's word)
    """Where each member looked; only for those who may see the ensemble's answer."""
    with desk.store.reading() as session:
        row = row_for(session, who, id)
        if not reviews.may_see_answer(session, row, who.name, desk.settings.blind_first):
            raise Conflict("expected your own verdict first, found none; the ensemble's answer is shown after it")
    return maps_of(desk, row)
