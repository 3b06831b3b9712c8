"""The way to a Ray cluster: to one that is there, or to one of this machine alone; never to one that is open to all.

Whoever can send a request to a Ray cluster can run any code on it. `ray start` listens on every network that a machine
is on, also when it is given a loopback address, so only its token keeps strangers out.
"""

import ipaddress
import logging
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ecgquorum.errors import ClusterError

_HELP = "https://docs.ray.io/en/latest/ray-security/token-auth.html"
_START = "RAY_AUTH_MODE=token ray start --head"
_PATIENCE_S, _CONNECT_S = 60.0, 3.0
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def import_ray() -> Any:
    """Ray, or one line that says how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked to be counted
    try:
        import psutil  # noqa: F401 (which tells the machine's addresses)
        import ray
    except ImportError as error:
        raise ClusterError(
            f'expected Ray, found no {error.name}; get it with: pip install "ecgquorum[cluster]"'
        ) from None
    return ray


@contextmanager
def connected(address: str | None, cpus: int | None = None) -> Iterator[Any]:
    """Ray, connected to a cluster for as long as the block runs.

    address: "auto", the cluster that this machine belongs to; HOST:PORT; None: a new one of this machine alone, of
             `cpus` cores, which ends with the block
    """
    known = sys.modules.get("ray")
    if known is not None and known.is_initialized():  # by the program that uses this library
        there = known.get_runtime_context().gcs_address
        if address not in (None, "auto", there):
            raise ClusterError(
                f"{address}: expected to connect to it, found this process connected to {there}; call ray.shutdown()"
            )
        check_closed(there)
        yield known
        return
    _check_address(address)
    with _own_token() if address is None else nullcontext():
        yield from _connected(import_ray(), address, cpus)


def _connected(ray: Any, address: str | None, cpus: int | None) -> Iterator[Any]:
    alone = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
    where: dict[str, Any] = {"address": address} if address else alone
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        ray.shutdown()
        raise ClusterError(
            f"{address or 'Ray'}: expected a Ray cluster, found: {first_line(error)}; start one with: {_START}, and "
            "have its token at hand"
        ) from error
    try:
        check_closed(ray.get_runtime_context().gcs_address)
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Refuse what is no address, or where nobody listens, at once; Ray would go on trying for minutes."""
    if address is not None and address != "auto":
        host, port = _host(address), address.rpartition(":")[2]
        if not host or not port.isdecimal() or "/" in host:
            raise ClusterError(
                f"--address: expected auto or HOST:PORT, found {address}; run the command on a machine of the cluster"
            )
        if not _listens(host, int(port)):
            raise ClusterError(f"{address}: expected a Ray cluster, found nobody there; start one with: {_START}")
        if not _has_token() and not answers_strangers(address):
            raise ClusterError(
                f"{address}: the cluster asks for a token, found none here; set RAY_AUTH_MODE=token, and have it in "
                f"~/.ray/auth_token, see {_HELP}"
            )


def check_closed(address: str) -> None:
    """Refuse a cluster that others can reach and that answers without its token."""
    host, port = _host(address), int(address.rpartition(":")[2])
    others = _own_addresses() if _is_loopback(host) else [host]
    reached = next((other for other in others if _listens(other, port)), None)
    if reached is not None:
        found = f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"
        if answers_strangers(found):
            raise ClusterError(
                f"{found}: expected a Ray cluster that asks for a token, found one that answers anybody who can "
                f"reach it; start it with RAY_AUTH_MODE=token on every machine, see {_HELP}"
            )


def answers_strangers(address: str) -> bool:
    """Whether the cluster answers a process that has no token."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    try:
        asked = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address],
            env=known | {"RAY_AUTH_MODE": "disabled"},
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        found = "no answer"
    else:
        if asked.returncode == 0:
            return True
        if "AuthenticationError" in asked.stderr:
            return False
        found = (asked.stderr.strip().splitlines() or ["nothing"])[-1]
    raise ClusterError(f"{address}: expected to learn whether the cluster asks for a token, found: {found}")


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def _has_token() -> bool:
    """Whether Ray will show a token: it does when told so, and when it finds one and is not told otherwise."""
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    given = any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return mode == "token" or (not mode and (given or (Path.home() / ".ray" / "auth_token").is_file()))


@contextmanager
def _own_token() -> Iterator[None]:
    """Give a new cluster a token that nobody else knows, unless the user has set how it is to be kept."""
    if "RAY_AUTH_MODE" in os.environ:
        yield
        return
    own = {"RAY_AUTH_MODE": "token"}
    if "RAY_AUTH_TOKEN" not in os.environ:
        own["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    os.environ.update(own)
    _have_token_read()
    try:
        yield
    finally:
        for name in own:
            os.environ.pop(name, None)
        _have_token_read()


def _have_token_read() -> None:
    """Ray reads how it is kept, and its token, when it is loaded; have it look again."""
    if "ray" in sys.modules:
        from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _own_addresses() -> list[str]:
    """The addresses by which others can reach this machine, on all of its networks."""
    import psutil

    found = [a.address for many in psutil.net_if_addrs().values() for a in many if a.family in _FAMILIES]
    return [address for address in found if not _is_loopback(address)]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def first_line(error: BaseException) -> str:
    """What an error says, in short."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
