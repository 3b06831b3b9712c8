"""Connect to a Ray cluster, or start one on this machine; refuse clusters without token authentication.

Anyone who can send a request to a Ray cluster can run any code on it. `ray start` listens on every network interface, also
when it is given a loopback address, so only its token protects it.
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
_STATUS_TIMEOUT_S, _CONNECT_TIMEOUT_S = 60.0, 3.0
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def import_ray() -> Any:
    """Import Ray; if it is not installed, the error says how to install it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports without consent
    try:
        import psutil  # noqa: F401 (for the machine's addresses)
        import ray
    except ImportError as error:
        raise ClusterError(
            f'the Ray executor needs {error.name}; install with: pip install "ecgquorum[cluster]"'
        ) from None
    return ray


@contextmanager
def connect_ray(address: str | None, cpus: int | None = None) -> Iterator[Any]:
    """Yield Ray, connected to a cluster while the block runs.

    address: "auto", the cluster that this machine belongs to; HOST:PORT; None: a new one of this machine alone, of
             `cpus` cores, which ends with the block
    """
    loaded = sys.modules.get("ray")
    if loaded is not None and loaded.is_initialized():  # by the program that uses this library
        current = loaded.get_runtime_context().gcs_address
        if address not in (None, "auto", current):
            raise ClusterError(
                f"{address}: this process is already connected to the Ray cluster {current}; call ray.shutdown() first"
            )
        check_authentication(current)
        yield loaded
        return
    _check_address(address)
    with _private_token() if address is None else nullcontext():
        yield from _initialise(import_ray(), address, cpus)


def _initialise(ray: Any, address: str | None, cpus: int | None) -> Iterator[Any]:
    alone = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
    where: dict[str, Any] = {"address": address} if address else alone
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        ray.shutdown()
        raise ClusterError(
            f"{address or 'Ray'}: could not connect to a Ray cluster: {first_line(error)}; start one with: {_START}, "
            "and copy its token to this machine"
        ) from error
    try:
        check_authentication(ray.get_runtime_context().gcs_address)
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Raise at once if this is not an address or nothing listens there; Ray would retry for minutes."""
    if address is not None and address != "auto":
        host, port = _host(address), address.rpartition(":")[2]
        if not host or not port.isdecimal() or "/" in host:
            raise ClusterError(
                f"--address: expected auto or HOST:PORT, found {address}; run the command on a machine of the cluster"
            )
        if not _listens(host, int(port)):
            raise ClusterError(f"{address}: no Ray cluster listens there; start one with: {_START}")
        if not _has_token() and not accepts_without_token(address):
            raise ClusterError(
                f"{address}: the cluster requires a token and this machine has none; set RAY_AUTH_MODE=token and save "
                f"the token to ~/.ray/auth_token, see {_HELP}"
            )


def check_authentication(address: str) -> None:
    """Raise if other machines can reach the cluster and it accepts requests without a token."""
    host, port = _host(address), int(address.rpartition(":")[2])
    others = _own_addresses() if _is_loopback(host) else [host]
    reached = next((other for other in others if _listens(other, port)), None)
    if reached is not None:
        found = f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"
        if accepts_without_token(found):
            raise ClusterError(
                f"{found}: this Ray cluster accepts requests without a token from anyone who can reach it; start it "
                f"with RAY_AUTH_MODE=token on every machine, see {_HELP}"
            )


def accepts_without_token(address: str) -> bool:
    """Whether the cluster answers a process that has no token."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    try:
        status = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address],
            env=environment | {"RAY_AUTH_MODE": "disabled"},
            capture_output=True,
            text=True,
            timeout=_STATUS_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = "no answer"
    else:
        if status.returncode == 0:
            return True
        if "AuthenticationError" in status.stderr:
            return False
        reason = (status.stderr.strip().splitlines() or ["nothing"])[-1]
    raise ClusterError(f"{address}: could not find out whether the cluster requires a token: {reason}")


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _has_token() -> bool:
    """Whether Ray will send a token: if RAY_AUTH_MODE says so, or if it is not set and there is a token."""
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    given = any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return mode == "token" or (not mode and (given or (Path.home() / ".ray" / "auth_token").is_file()))


@contextmanager
def _private_token() -> Iterator[None]:
    """Give a new cluster a random token, unless the user has set RAY_AUTH_MODE."""
    if "RAY_AUTH_MODE" in os.environ:
        yield
        return
    own = {"RAY_AUTH_MODE": "token"}
    if "RAY_AUTH_TOKEN" not in os.environ:
        own["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    os.environ.update(own)
    _reload_token()
    try:
        yield
    finally:
        for name in own:
            os.environ.pop(name, None)
        _reload_token()


def _reload_token() -> None:
    """Make Ray read the mode and the token again, which it does only once, when it is imported."""
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
    """The first line of an error message."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
