"""The pages that people see, written on the server; scripts add keys, uploads and news."""

import secrets
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

from ecgquorum.service import charts
from ecgquorum.service.api.dependencies import RecordingId, ThisDesk, Who
from ecgquorum.service.api.recordings import Quality, ShownState
from ecgquorum.service.api.sessions import set_cookie
from ecgquorum.service.desk import Desk
from ecgquorum.service.measures import measured
from ecgquorum.service.middleware import COOKIE, csrf_token
from ecgquorum.service.store import audit, reviews, worklist
from ecgquorum.service.store.tokens import Actor, Role
from ecgquorum.service.store.worklist import SHOWN_STATES, Filter
from ecgquorum.service.uploads import KNOWN_ENDINGS
from ecgquorum.service.views import case_of, cases_of, row_for

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_PAGE = 100
_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
_PLACES = (
    ("/", "Worklist", frozenset(Role)),
    ("/upload", "Upload", frozenset({Role.UPLOADER, Role.ADMIN})),
    ("/measures", "Measures", frozenset({Role.READER, Role.AUDITOR, Role.ADMIN})),
    ("/export", "Export", frozenset({Role.AUDITOR, Role.ADMIN})),
    ("/audit", "Audit log", frozenset({Role.AUDITOR, Role.ADMIN})),
)


def waited(seconds: float) -> str:
    """A length of time for people: the two largest units."""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        count, seconds = divmod(seconds, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{int(count)} {unit}")
    return " ".join(parts[:2])


def clock(at: str | None) -> str:
    """A stored time for people, in UTC."""
    return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M") if at else ""


_templates.filters |= {"waited": waited, "clock": clock}


def _shown(request: Request, desk: Desk, who: Actor | None, template: str, **values: Any) -> HTMLResponse:
    """A page; a browser without a session gets a cookie for its forms, if tokens are off."""
    cookie = request.cookies.get(COOKIE, "")
    fresh = "" if cookie or desk.settings.tokens else secrets.token_urlsafe(32)
    places = [(path, name) for path, name, roles in _PLACES if who and roles & who.roles]
    text = _templates.get_template(template).render(
        csrf=csrf_token(desk, cookie or fresh),
        who=who,
        tokens=desk.settings.tokens,
        places=places,
        here=request.url.path,
        model=desk.model_name,
        **values,
    )
    response = HTMLResponse(text)
    if fresh:
        set_cookie(request, response, fresh, desk.settings.session_s)
    return response


@router.get("/login")
def login(request: Request, desk: ThisDesk) -> HTMLResponse:
    """Where a token opens a session."""
    return _shown(request, desk, None, "login.html")


@router.get("/")
def worklist_page(
    request: Request,
    desk: ThisDesk,
    who: Who,
    state: ShownState = "",
    quality: Quality = "",
    q: Annotated[str, Query(max_length=200)] = "",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> HTMLResponse:
    """The worklist."""
    own = who.name if who.roles == {Role.UPLOADER} else ""
    with desk.store.reading() as session:
        rows, total = worklist.listed(session, Filter(state, quality, q.replace("\0", ""), own), _PAGE, offset)
        values = {
            "cases": cases_of(session, desk, who, rows),
            "total": total,
            "counts": worklist.counts(session, own),
        }
    chosen = {"state": state, "quality": quality, "q": q}
    return _shown(
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
def case_page(id: RecordingId, request: Request, desk: ThisDesk, who: Who) -> HTMLResponse:  # noqa: A002 (the path's word)
    """One case: the recording, and what people and members say of it."""
    with desk.store.reading() as session:
        row = row_for(session, who, id)
        case = case_of(session, desk, who, row)
        following = worklist.next_open(session, who.name, desk.store.now(), row.id)
        shown = reviews.may_see_answer(session, row, who.name, desk.settings.blind_first)
    bars = charts.votes(case.answer.members, case.answer.probabilities, desk.classes) if case.answer else None
    return _shown(
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
def upload_page(request: Request, desk: ThisDesk, who: Who) -> HTMLResponse:
    """Where files are dropped."""
    return _shown(
        request,
        desk,
        who,
        "upload.html",
        endings=",".join(KNOWN_ENDINGS),
        limit_mb=desk.settings.upload_bytes >> 20,
        leads=desk.ensemble.input.leads,
    )


@router.get("/measures")
def measures_page(request: Request, desk: ThisDesk, who: Who) -> HTMLResponse:
    """How the desk is doing, drawn."""
    with desk.store.reading() as session:
        found = measured(session, desk)
    return _shown(
        request,
        desk,
        who,
        "measures.html",
        measures=found,
        names=desk.class_names,
        drift=charts.drift(found.drift),
        throughput=charts.throughput(found.steps, found.step_s),
        deferral=charts.deferral(found.steps),
        agreement=charts.shares(found.agreement),
        confusion=charts.confusion(found.confusion),
    )


@router.get("/audit")
def audit_page(
    request: Request, desk: ThisDesk, who: Who, before: Annotated[int | None, Query(ge=1, le=1 << 31)] = None
) -> HTMLResponse:
    """The audit log, and whether it holds."""
    with desk.store.reading() as session:
        total, head = audit.head(session)
        entries = audit.latest(session, before or total + 1, _PAGE)
        verified = audit.verified(session)
    return _shown(request, desk, who, "audit.html", entries=entries, total=total, head=head, verified=verified)


@router.get("/export")
def export_page(request: Request, desk: ThisDesk, who: Who) -> HTMLResponse:
    """What can be taken along."""
    with desk.store.reading() as session:
        counts = worklist.counts(session)
    return _shown(request, desk, who, "export.html", counts=counts, n_closed=counts["confirmed"] + counts["amended"])
