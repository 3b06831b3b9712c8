"""Commands of the review desk: serve, token, audit."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import (
    DEFAULT_MODEL,
    DESK,
    INTERRUPTED,
    Group,
    Identify,
    Lead,
    MemberName,
    app,
    folder_option,
)
from ecgquorum.cli.console import err, print_line, print_table, print_warning
from ecgquorum.errors import DeskError
from ecgquorum.progress import console_progress

if TYPE_CHECKING:
    from ecgquorum.service.desk import Desk
    from ecgquorum.service.settings import Settings
    from ecgquorum.service.store import Store
    from ecgquorum.service.triaged_folder import TriagedFolder

token_app = typer.Typer(cls=Group, help="Access tokens of the review desk: add, list, revoke.", no_args_is_help=True)
audit_app = typer.Typer(cls=Group, help="The review desk's audit log.", no_args_is_help=True)

_MAX_PROBLEMS = 50
DEMO_MODEL = "cpsc2018"
Data = Annotated[Path, folder_option("The desk's folder: uploaded files and the database.")]
Database = Annotated[
    str, typer.Option(help="Another database: postgresql://USER@HOST/NAME. Default: SQLite in --data.")
]


def check_extra() -> None:
    """Raise unless the packages of the desk are installed."""
    from importlib.util import find_spec

    missing = [name for name in ("alembic", "fastapi", "sqlalchemy", "uvicorn") if find_spec(name) is None]
    if missing:
        raise DeskError(f"the review desk needs {', '.join(missing)}; install with: pip install 'ecgquorum[serve]'")


@app.command(rich_help_panel=DESK)
def serve(
    demo: Annotated[
        bool, typer.Option("--demo", help="Open a desk with simulated recordings, in the folder desk-demo.")
    ] = False,
    data: Annotated[
        Path | None,
        folder_option("The desk's folder: uploaded files, and its database unless --database. Default: desk."),
    ] = None,
    database: Database = "",
    triage: Annotated[
        Path | None,
        typer.Option(help="Also open this triaged folder (triage --out), with its results; nothing is added twice."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help=f"A bundle with a policy, or one that ships. Default: {DEFAULT_MODEL}; demo: {DEMO_MODEL}."),
    ] = None,
    member: MemberName = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that other machines can reach needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    lead: Lead = None,
    identify: Identify = False,
    blind: Annotated[
        bool,
        typer.Option("--blind/--open", help="Hide the ensemble's answer until the reader has given a first verdict."),
    ] = True,
    audit: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of certain recordings that are also read, 0 to 1.")
    ] = None,
    second: Annotated[
        float, typer.Option(min=0, max=1, help="Share of cases that a second reader reads as well, 0 to 1.")
    ] = 0.0,
    second_class: Annotated[
        list[str] | None, typer.Option(help="A class, by the ensemble or the first reader, that two always read.")
    ] = None,
    reclassify: Annotated[
        bool | None,
        typer.Option(
            "--reclassify/--keep-results",
            help="With another model than before: classify open cases again, or keep their results and classes.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that classify.")] = 1,
    largest_mb: Annotated[int, typer.Option(min=1, max=1024, help="Largest file accepted, in MiB.")] = 64,
    quota_gb: Annotated[float, typer.Option(min=0, help="Most that all files may have, in GiB; 0: no limit.")] = 0.0,
    uploader_quota_gb: Annotated[
        float, typer.Option(min=0, help="Most that the files of one uploader may have, in GiB; 0: no limit.")
    ] = 0.0,
    allow_host: Annotated[list[str] | None, typer.Option(help="Another host name of the desk, behind a proxy.")] = None,
) -> None:
    """Start the review desk: web pages where people read uncertain recordings, and an API for programs.

    Without tokens (`ecgquorum token add`) only this machine can use it. Ctrl-C stops it; nothing is lost.
    """
    check_extra()
    from ecgquorum.service.demo_desk import AUDIT_SHARE
    from ecgquorum.service.server import serve as run
    from ecgquorum.service.settings import Settings
    from ecgquorum.service.triaged_folder import TriagedFolder

    share = audit if audit is not None else AUDIT_SHARE if demo else Settings.audit_share
    settings = Settings(
        data=data or Path("desk-demo" if demo else "desk"),
        model=model or (DEMO_MODEL if demo else DEFAULT_MODEL),
        member=member,
        database=database,
        host=host,
        port=port,
        lead=lead,
        identify=identify,
        blind_first=blind,
        audit_share=share,
        second_share=second,
        second_classes=tuple(second_class or ()),
        reclassify=reclassify,
        workers=workers,
        upload_bytes=largest_mb << 20,
        quota_bytes=round(quota_gb * (1 << 30)),
        uploader_quota_bytes=round(uploader_quota_gb * (1 << 30)),
        allowed_hosts=tuple(allow_host or ()),
    )
    triaged = TriagedFolder(triage) if triage else None
    desk = _open_desk(settings, triaged)
    if triaged:
        _open_folder(desk, triaged)
    where = f"[{host}]" if ":" in host else host
    print_line(f"review desk: http://{where}:{port}  (model {desk.model_name}; Ctrl-C stops it)")
    if desk.settings.tokens:
        print_line("a token is needed; create one with: ecgquorum token add NAME --role reader")
    run(desk, demo=demo)


def _open_folder(desk: "Desk", triaged: "TriagedFolder") -> None:
    try:
        with console_progress("opening", err) as progress:
            report = triaged.open_at(desk, progress)
    except KeyboardInterrupt:
        err.print("stopped; what was opened stays at the desk; the same command continues", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    for problem in report.problems[:_MAX_PROBLEMS]:
        print_warning(f"left out: {problem}")
    if len(report.problems) > _MAX_PROBLEMS:
        print_warning(f"left out: {len(report.problems) - _MAX_PROBLEMS} more")
    print_line(f"{triaged.folder}: {report.sentence()}")


def _open_desk(settings: "Settings", triaged: "TriagedFolder | None") -> "Desk":
    """Open the desk; if open cases are of another model, ask what to do where someone can answer."""
    from ecgquorum.service.server import ModelChangedError, open_desk

    try:
        return open_desk(settings, triaged)
    except ModelChangedError as error:
        if not sys.stdin.isatty():
            raise
        err.print(str(error), markup=False)
        again = typer.confirm("Classify them again?")
        return open_desk(replace(settings, reclassify=again), triaged)


@token_app.command("add")
def token_add(
    name: Annotated[str, typer.Argument(help="The owner's name, as shown in the audit log.")],
    role: Annotated[str, typer.Option(help="reader, uploader, auditor or admin.")],
    days: Annotated[int, typer.Option(min=0, max=3650, help="How long it is valid; 0: until it is revoked.")] = 365,
    data: Data = Path("desk"),
    database: Database = "",
) -> None:
    """Create a token and print it once; only its hash is stored. Restart a desk that runs without tokens."""
    from ecgquorum.service.store import tokens

    store = _open_store(data, database)
    with store.write_session() as session:
        expires = store.after(days * 86400.0) if days else None
        token = tokens.add_token(session, store.now(), name, role, expires)
    err.print(f"token of {name}, {role}; it is not shown again:", markup=False)
    print(token)


@token_app.command("list")
def token_list(data: Data = Path("desk"), database: Database = "") -> None:
    """List all tokens: name, role, date, and whether each is valid."""
    from ecgquorum.service.store import tokens

    store = _open_store(data, database)
    now = store.now()
    with store.read_session() as session:
        rows = [
            (row.name, row.role, row.created_at[:16].replace("T", " "), (row.expires_at or "")[:10], state)
            for row in tokens.list_tokens(session)
            for state in ("revoked" if row.revoked_at else "valid" if tokens.is_valid(row, now) else "expired",)
        ]
    if rows:
        print_table([("name", "role", "since (UTC)", "until", ""), *rows])
    else:
        print_line("no tokens; only this machine can use the desk")


@token_app.command("revoke")
def token_revoke(
    name: Annotated[str, typer.Argument(help="The token's name.")], data: Data = Path("desk"), database: Database = ""
) -> None:
    """Revoke a token and close all sessions that were opened with it."""
    from ecgquorum.service.store import tokens

    store = _open_store(data, database)
    with store.write_session() as session:
        row = tokens.revoke_token(session, store.now(), name)
    print_line(f"the token of {row.name} is revoked")


@audit_app.command("verify")
def audit_verify(
    data: Data = Path("desk"),
    database: Database = "",
    noted: Annotated[
        str | None, typer.Option(help="NUMBER:HASH of an earlier entry, which must still be in the log.")
    ] = None,
    files: Annotated[bool, typer.Option(help="Also read all stored files and compare their SHA-256.")] = True,
) -> None:
    """Check the audit log's hash chain, and verdicts, results and stored files against it; names what was changed."""
    from ecgquorum.service.files import FileStore
    from ecgquorum.service.store import audit, verification

    store = _open_store(data, database, must_exist=True)
    with store.read_session() as session:
        found = audit.verify_log(session, _parse_entry(noted))
    if found.problem:
        raise DeskError(f"the audit log is intact up to entry {found.n_entries}; then {found.problem}")
    with store.read_session() as session:
        problems = list(verification.verify_data(session, FileStore(data).hash_file if files else None))
    for problem in problems[:_MAX_PROBLEMS]:
        err.print(problem, markup=False)
    if problems:
        raise DeskError(f"the audit log is intact, but {len(problems)} of the stored data contradict it")
    print_line(f"the audit log is intact: {found.n_entries} entries, head {found.n_entries}:{found.head}")


def _parse_entry(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    number, _, digest = text.partition(":")
    if not number.isdigit() or len(digest) != 64:
        raise DeskError(f"--noted: expected NUMBER:HASH as `audit verify` prints it, found {text!r}")
    return int(number), digest


def _open_store(data: Path, database: str, must_exist: bool = False) -> "Store":
    check_extra()
    from ecgquorum.service.settings import Settings
    from ecgquorum.service.store.database import open_store

    settings = Settings(data=data, model="", database=database)
    return open_store(settings.database_url, data, must_exist=must_exist)


app.add_typer(token_app, name="token", rich_help_panel=DESK)
app.add_typer(audit_app, name="audit", rich_help_panel=DESK)
