"""The HTML pages, rendered on the server; scripts add keyboard shortcuts, uploads and live updates."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from ecgquorum.service import charts
from ecgquorum.service.api.admin_status import read_status
from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId
from ecgquorum.service.api.worklist_query import CaseFilter, ListFilter, RowsFilter
from ecgquorum.service.case_details import list_earlier
from ecgquorum.service.exports import blind_cases, entry_values
from ecgquorum.service.metrics_cache import recent_metrics
from ecgquorum.service.store import assignment, audit, models, reviews, worklist
from ecgquorum.service.store.tokens import Role
from ecgquorum.service.store.worklist import SHOWN_STATES
from ecgquorum.service.templating import render_page, render_text
from ecgquorum.service.uploads import KNOWN_ENDINGS
from ecgquorum.service.views import make_case, make_cases, visible_row

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_PAGE = 100


@router.get("/login")
def login(
    request: Request,
    desk: CurrentDesk,
    back: Annotated[str, Query(alias="next", max_length=2000)] = "/",
) -> HTMLResponse:
    """The sign-in page; it returns to the page that asked for it."""
    is_here = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    return render_page(request, desk, None, "login.html", back=back if is_here else "/")


@router.get("/")
def worklist_page(request: Request, desk: CurrentDesk, who: CurrentActor, wanted: ListFilter) -> HTMLResponse:
    """The worklist."""
    filter_ = wanted.filter_for(who)
    with desk.store.read_session() as session:
        values = {"change": audit.head(session)[0], "classes": models.known_classes(session)}
        rows, total = worklist.query_worklist(session, filter_, wanted.limit, wanted.offset)
        values |= {
            "cases": make_cases(session, desk, who, rows),
            "total": total,
            "counts": worklist.count_states(session, filter_.uploader),
        }
    return render_page(
        request,
        desk,
        who,
        "worklist.html",
        states=SHOWN_STATES,
        chosen=wanted,
        may_open=who.roles != {Role.UPLOADER},
        **values,
    )


@router.get("/rows")
def rows_part(
    desk: CurrentDesk,
    who: CurrentActor,
    wanted: RowsFilter,
) -> HTMLResponse:
    """Some rows of the worklist, for live updates: those of the given recordings that the filter still matches."""
    filter_ = wanted.filter_for(who)
    with desk.store.read_session() as session:
        rows, _ = worklist.query_worklist(session, filter_, len(wanted.ids) or 1, ids=wanted.ids)
        cases = make_cases(session, desk, who, rows)
        counts = worklist.count_states(session, filter_.uploader)
    may_open = who.roles != {Role.UPLOADER}
    text = render_text("rows.html", cases=cases, counts=counts, states=SHOWN_STATES, chosen=wanted, may_open=may_open)
    return HTMLResponse(text)


@router.get("/cases/{id}")
def case_page(
    id: RecordingId,  # noqa: A002 (the path's word)
    request: Request,
    desk: CurrentDesk,
    who: CurrentActor,
    wanted: CaseFilter,
) -> HTMLResponse:
    """One case: the recording, the verdicts and the result of the ensemble."""
    filter_ = wanted.filter_for(who)
    with desk.store.read_session() as session:
        change = audit.head(session)[0]
        row = visible_row(session, who, id)
        case = make_case(session, desk, who, row)
        following, previous = (
            worklist.adjacent_case(session, row, filter_, who.name, desk.store.now(), back=back)
            for back in (False, True)
        )
        shown = reviews.may_see_answer(session, row, who.name, desk.settings.blind_first)
        readers = assignment.list_readers(session, desk.store.now())
        names = models.classes_of(session, reviews.latest_result(session, row.id))[1] if row.classified_at else {}
        earlier = list_earlier(session, row)
    bars = None
    if answer := case.answer:
        bars = charts.class_bars(answer.raw_member_probabilities, answer.probabilities, case.classes)
    return render_page(
        request,
        desk,
        who,
        "case.html",
        change=change,
        case=case,
        chosen=wanted,
        following=following,
        previous=previous,
        shown=shown and case.answer is not None,
        bars=bars,
        earlier=earlier,
        classes=[(name, names.get(name, "")) for name in case.classes],
        may_judge=Role.READER in who.roles,
        may_administer=Role.ADMIN in who.roles,
        readers=readers,
        blind_first=desk.settings.blind_first,
        claim_s=desk.settings.claim_s,
        undo_s=desk.settings.undo_s,
    )


@router.get("/upload")
def upload_page(request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:
    """The upload page."""
    return render_page(
        request,
        desk,
        who,
        "upload.html",
        endings=",".join(KNOWN_ENDINGS),
        limit_mb=desk.settings.upload_bytes >> 20,
        leads=desk.ensemble.input.leads,
        may_open=who.roles != {Role.UPLOADER},
    )


@router.get("/measures")
def measures_page(request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:
    """Metrics of the desk."""
    metrics, is_current = recent_metrics(desk)
    return render_page(
        request,
        desk,
        who,
        "measures.html",
        metrics=metrics,
        is_current=is_current,
        names=desk.class_names,
        drift=charts.drift_histogram(metrics.drift),
        throughput=charts.throughput(metrics.steps, metrics.step_s),
        deferral=charts.deferral(metrics.steps),
        agreement=charts.proportions(metrics.agreement),
        confusion=charts.confusion(metrics.confusion),
    )


@router.get("/audit")
def audit_page(
    request: Request,
    desk: CurrentDesk,
    who: CurrentActor,
    before: Annotated[int | None, Query(ge=1, le=1 << 31)] = None,
) -> HTMLResponse:
    """The audit log and the check of its hash chain."""
    with desk.store.read_session() as session:
        total, head = audit.head(session)
        hidden = blind_cases(session)
        entries = [entry_values(row, hidden) for row in audit.latest(session, before or total + 1, _PAGE)]
        check = desk.log_check.update(session, audit.CHECKED_AT_ONCE)
    return render_page(request, desk, who, "audit.html", entries=entries, total=total, head=head, check=check)


@router.get("/admin")
def admin_page(request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:
    """Queue, workers, disk, claims, tokens and the access log."""
    with desk.store.read_session() as session:
        change = audit.head(session)[0]
    status, access = read_status(desk, request.app.state), desk.access_log.latest(_PAGE)
    return render_page(request, desk, who, "admin.html", change=change, status=status, access=access, roles=list(Role))


@router.get("/export")
def export_page(request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:
    """Downloads."""
    with desk.store.read_session() as session:
        counts = worklist.count_states(session)
    return render_page(
        request, desk, who, "export.html", counts=counts, n_closed=counts["confirmed"] + counts["amended"]
    )
