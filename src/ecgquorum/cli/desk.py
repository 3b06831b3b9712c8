"""Commands of the review desk: serve, token, audit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import DEFAULT_MODEL, app
from ecgquorum.cli.console import err, print_table
from ecgquorum.cli.console import out as stdout
from ecgquorum.errors import DeskError

if TYPE_CHECKING:
    from ecgquorum.service.store import Store

token_app = typer.Typer(help="Who may use the review desk: make, list and revoke tokens.", no_args_is_help=True)
app.add_typer(token_app, name="token")
audit_app = typer.Typer(help="The review desk's audit log.", no_args_is_help=True)
app.add_typer(audit_app, name="audit")

DEMO_MODEL = "cpsc2018-compact"
Data = Annotated[Path, typer.Option(help="The desk's folder: uploaded files, and its database unless --database.")]
Database = Annotated[str, typer.Option(help="Another database: postgresql://USER@HOST/NAME.")]


def _needs_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("alembic", "fastapi", "sqlalchemy", "uvicorn") if find_spec(name) is None]
    if missing:
        raise DeskError(
            f"expected the packages of the review desk, found no {', '.join(missing)}; "
            "install them with: pip install 'ecgquorum[serve]'"
        )


@app.command()
def serve(
    demo: Annotated[
        bool, typer.Option("--demo", help="A desk of simulated recordings to look at, in a folder of its own.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="The desk's folder: uploaded files, and its database unless --database. Default: desk."),
    ] = None,
    database: Database = "",
    model: Annotated[
        str | None,
        typer.Option(help=f"A bundle with a policy, or one that ships. Default: {DEFAULT_MODEL}; demo: {DEMO_MODEL}."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; an address that others reach needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    lead: Annotated[str | None, typer.Option(help="Which lead to take, for a model of one lead.")] = None,
    blind: Annotated[
        bool, typer.Option("--blind/--open", help="Hide the ensemble's answer until the reader's first verdict.")
    ] = True,
    audit: Annotated[float | None, typer.Option(min=0, max=1, help="Share of certain recordings to read too.")] = None,
    largest_mb: Annotated[int, typer.Option(min=1, max=1024, help="The largest file that is taken, in MiB.")] = 64,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name that browsers reach the desk by, behind a proxy.")
    ] = None,
) -> None:
    """Start the review desk, where people read what the ensemble doubts: pages for them, an API for programs.

    It answers this machine alone until there are tokens (`ecgquorum token add`). Ctrl-C ends it; nothing is lost.
    """
    _needs_extra()
    from ecgquorum.service.demo_desk import AUDIT_SHARE
    from ecgquorum.service.server import open_desk
    from ecgquorum.service.server import serve as run
    from ecgquorum.service.settings import Settings

    share = audit if audit is not None else AUDIT_SHARE if demo else Settings.audit_share
    settings = Settings(
        data=data or Path("desk-demo" if demo else "desk"),
        model=model or (DEMO_MODEL if demo else DEFAULT_MODEL),
        database=database,
        host=host,
        port=port,
        lead=lead,
        blind_first=blind,
        audit_share=share,
        upload_bytes=largest_mb << 20,
        allowed_hosts=tuple(allow_host or ()),
    )
    desk = open_desk(settings)
    where = f"[{host}]" if ":" in host else host
    stdout.print(f"review desk: http://{where}:{port}  (model {desk.model_name}; Ctrl-C ends it)", markup=False)
    if desk.settings.tokens:
        stdout.print("a token is needed; make one with: ecgquorum token add NAME --role reader", markup=False)
    run(desk, demo=demo)


@token_app.command("add")
def token_add(
    name: Annotated[str, typer.Argument(help="Whose it is; it stands in the audit log.")],
    role: Annotated[str, typer.Option(help="reader, uploader, auditor or admin.")],
    data: Data = Path("desk"),
    database: Database = "",
) -> None:
    """Make a token and show it, this once; only its hash is kept. A running desk without tokens wants a restart."""
    from ecgquorum.service.store import tokens

    store = _store(data, database)
    with store.write_session() as session:
        token = tokens.add_token(session, store.now(), name, role)
    err.print(f"the token of {name}, {role}; it is not shown again:", markup=False)
    print(token)


@token_app.command("list")
def token_list(data: Data = Path("desk"), database: Database = "") -> None:
    """Every token: whose, which role, since when, and whether it still holds."""
    from ecgquorum.service.store import tokens

    with _store(data, database).read_session() as session:
        rows = [
            (row.name, row.role, row.created_at[:16].replace("T", " "), "revoked" if row.revoked_at else "holds")
            for row in tokens.list_tokens(session)
        ]
    if rows:
        print_table([("name", "role", "since (UTC)", ""), *rows])
    else:
        stdout.print("no tokens; the desk answers this machine alone", markup=False)


@token_app.command("revoke")
def token_revoke(
    name: Annotated[str, typer.Argument(help="The token's name.")], data: Data = Path("desk"), database: Database = ""
) -> None:
    """End a token, and all sessions that were opened with it, at once."""
    from ecgquorum.service.store import tokens

    store = _store(data, database)
    with store.write_session() as session:
        row = tokens.revoke_token(session, store.now(), name)
    stdout.print(f"the token of {row.name} no longer holds", markup=False)


@audit_app.command("verify")
def audit_verify(
    data: Data = Path("desk"),
    database: Database = "",
    noted: Annotated[
        str | None, typer.Option(help="NUMBER:HASH of an entry that was noted earlier, which must still be there.")
    ] = None,
) -> None:
    """Follow the audit log's chain: finds any entry that was changed, removed or put elsewhere."""
    from ecgquorum.service.store import audit

    with _store(data, database, must_exist=True).read_session() as session:
        found = audit.verify_log(session, _noted(noted))
    if found.problem:
        raise DeskError(f"the audit log holds up to entry {found.n_entries}; then {found.problem}")
    stdout.print(f"the audit log holds: {found.n_entries} entries, head {found.n_entries}:{found.head}", markup=False)


def _noted(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    number, _, digest = text.partition(":")
    if not number.isdigit() or len(digest) != 64:
        raise DeskError(f"--noted: expected NUMBER:HASH as `audit verify` prints it, found {text!r}")
    return int(number), digest


def _store(data: Path, database: str, must_exist: bool = False) -> "Store":
    _needs_extra()
    from ecgquorum.service.settings import Settings
    from ecgquorum.service.store import Store

    settings = Settings(data=data, model="", database=database)
    if must_exist and not database and not (data / "desk.sqlite").is_file():
        raise DeskError(f"{data}: expected the folder of a review desk, found none; choose one with --data")
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = Store(settings.database_url)
    store.migrate()
    return store
