"""The HTML pages, rendered on the server; scripts add keyboard shortcuts, uploads and live updates."""

import secrets
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

from ecgquorum.service import charts
from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId
from ecgquorum.service.api.recordings import Quality, ShownState
from ecgquorum.service.api.sessions import set_cookie
from ecgquorum.service.desk import Desk
from ecgquorum.service.desk_metrics import compute_metrics
from ecgquorum.service.middleware import COOKIE, csrf_token
from ecgquorum.service.store import audit, reviews, worklist
from ecgquorum.service.store.tokens import Actor, Role
from ecgquorum.service.store.worklist import SHOWN_STATES, WorklistFilter
from ecgquorum.service.uploads import KNOWN_ENDINGS
from ecgquorum.service.views import make_case, make_cases, visible_row

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_PAGE = 100
_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
_NAVIGATION = (
    ("/", "Worklist", frozenset(Role)),
    ("/upload", "Upload", frozenset({Role.UPLOADER, Role.ADMIN})),
    ("/measures", "Metrics", frozenset({Role.READER, Role.AUDITOR, Role.ADMIN})),
    ("/export", "Export", frozenset({Role.AUDITOR, Role.ADMIN})),
    ("/audit", "Audit log", frozenset({Role.AUDITOR, Role.ADMIN})),
)


def format_duration(seconds: float) -> str:
    """Format a duration with its two largest units."""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        count, seconds = divmod(seconds, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{int(count)} {unit}")
    return " ".join(parts[:2])


def format_time(at: str | None) -> str:
    """Format a stored time, in UTC."""
    return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M") if at else ""


_templates.filters |= {"format_duration": format_duration, "format_time": format_time}


def _render(request: Request, desk: Desk, who: Actor | None, template: str, **values: Any) -> HTMLResponse:
    """Render a page; if tokens are off, a browser without a session gets a cookie for its CSRF token."""
    cookie = request.cookies.get(COOKIE, "")
    fresh = "" if cookie or desk.settings.tokens else secrets.token_urlsafe(32)
    navigation = [(path, name) for path, name, roles in _NAVIGATION if who and roles & who.roles]
    text = _templates.get_template(template).render(
        csrf=csrf_token(desk, cookie or fresh),
        who=who,
        tokens=desk.settings.tokens,
        navigation=navigation,
        here=request.url.path,
        model=desk.model_name,
        **values,
    )
    response = HTMLResponse(text)
    if fresh:
        set_cookie(request, response, fresh, desk.settings.session_s)
    return response


@router.get("/login")
def login(request: Request, desk: CurrentDesk) -> HTMLResponse:
    """The sign-in page."""
    return _render(request, desk, None, "login.html")


@router.get("/")
def worklist_page(
    request: Request,
    desk: CurrentDesk,
    who: CurrentActor,
    state: ShownState = "",
    quality: Quality = "",
    q: Annotated[str, Query(max_length=200)] = "",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> HTMLResponse:
    """The worklist."""
    own = who.name if who.roles == {Role.UPLOADER} else ""
    with desk.store.read_session() as session:
        rows, total = worklist.query_worklist(
            session, WorklistFilter(state, quality, q.replace("\0", ""), own), _PAGE, offset
        )
        values = {
            "cases": make_cases(session, desk, who, rows),
            "total": total,
            "counts": worklist.count_states(session, own),
        }
    chosen = {"state": state, "quality": quality, "q": q}
    return _render(
        request,
        desk,
        who,
        "worklist.html",
        states=SHOWN_STATES,
        chosen=chosen,
        offset=offset,
        page=_PAGE,
        may_open=who.roles != {Role.UPLOADER},
        **values,
    )


@router.get("/cases/{id}")
def case_page(id: RecordingId, request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:  # noqa: A002 (the path's word)
    """One case: the recording, the verdicts and the result of the ensemble."""
    with desk.store.read_session() as session:
        row = visible_row(session, who, id)
        case = make_case(session, desk, who, row)
        following = worklist.next_open_case(session, who.name, desk.store.now(), row.id)
        shown = reviews.may_see_answer(session, row, who.name, desk.settings.blind_first)
    bars = None
    if answer := case.answer:
        bars = charts.class_bars(answer.raw_member_probabilities, answer.probabilities, desk.classes)
    return _render(
        request,
        desk,
        who,
        "case.html",
        case=case,
        following=following,
        shown=shown and case.answer is not None,
        bars=bars,
        classes=[(name, desk.class_names.get(name, "")) for name in desk.classes],
        may_judge=Role.READER in who.roles,
        blind_first=desk.settings.blind_first,
        claim_s=desk.settings.claim_s,
    )


@router.get("/upload")
def upload_page(request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:
    """The upload page."""
    return _render(
        request,
        desk,
        who,
        "upload.html",
        endings=",".join(KNOWN_ENDINGS),
        limit_mb=desk.settings.upload_bytes >> 20,
        leads=desk.ensemble.input.leads,
    )


@router.get("/measures")
def measures_page(request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:
    """Metrics of the desk."""
    with desk.store.read_session() as session:
        metrics = compute_metrics(session, desk)
    return _render(
        request,
        desk,
        who,
        "measures.html",
        metrics=metrics,
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
        entries = audit.latest(session, before or total + 1, _PAGE)
        check = audit.verify_log(session)
    return _render(request, desk, who, "audit.html", entries=entries, total=total, head=head, check=check)


@router.get("/export")
def export_page(request: Request, desk: CurrentDesk, who: CurrentActor) -> HTMLResponse:
    """Downloads."""
    with desk.store.read_session() as session:
        counts = worklist.count_states(session)
    return _render(request, desk, who, "export.html", counts=counts, n_closed=counts["confirmed"] + counts["amended"])
