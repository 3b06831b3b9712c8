"""Route of attribution maps."""

from fastapi import APIRouter

from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId, error_responses
from ecgquorum.service.http_errors import ConflictError, NotFoundError
from ecgquorum.service.maps import Maps, make_maps
from ecgquorum.service.store import reviews
from ecgquorum.service.views import visible_row

router = APIRouter(prefix="/api/recordings/{id}", tags=["recordings"])


@router.get("/maps", responses=error_responses(404, 409))
def maps(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> Maps:  # noqa: A002 (the name in the path)
    """Attribution maps of the members; only for those who may see the ensemble's result."""
    with desk.store.read_session() as session:
        row = visible_row(session, who, id)
        if not reviews.may_see_answer(session, row, who.name, desk.settings.blind_first):
            raise ConflictError("give your first verdict; the ensemble's result is shown after it")
        if row.classified_at and reviews.latest_result(session, row.id).model_sha256 != desk.model_sha256:
            raise NotFoundError("the result is of another model than the desk has now; it has no maps here")
    return make_maps(desk, row)
