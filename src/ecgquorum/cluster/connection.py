"""The way to a Ray cluster: to one that is there, or to one of this machine alone; never to one that is open to all.

Whoever can send a request to a Ray cluster can run any code on it. Ray listens on every network that a machine is on,
whatever address it was given, so only its token keeps strangers out.
"""

import ipaddress
import logging
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ecgquorum.errors import ClusterError

_HELP = "https://docs.ray.io/en/latest/ray-security/token-auth.html"
_PATIENCE_S, _CONNECT_S = 60.0, 3.0


def imported_ray() -> Any:
    """Ray, or one line that says how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked to be counted
    try:
        import ray
    except ImportError:
        raise ClusterError('expected Ray, found none; get it with: pip install "ecgquorum[cluster]"') from None
    return ray


@contextmanager
def connected(address: str | None, cpus: int | None = None) -> Iterator[Any]:
    """Ray, connected to a cluster for as long as the block runs.

    address: "auto", the cluster that this machine belongs to; HOST:PORT; None: a new one of this machine alone, of
             `cpus` cores, which ends with the block
    """
    if address is not None and "://" in address:
        raise ClusterError(
            f"--address: expected auto or HOST:PORT, found {address}; run the command on a machine of the cluster"
        )
    if address is None:
        _keep_strangers_out()
    ray = imported_ray()
    if ray.is_initialized():
        yield ray
        return
    where: dict[str, Any] = {"address": address or "local"}
    if address is None:
        where |= {"num_cpus": cpus, "include_dashboard": False}
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        ray.shutdown()
        raise ClusterError(
            f"{address or 'Ray'}: expected a Ray cluster, found: {_first_line(error)}; start one with: ray start --head"
        ) from error
    try:
        check_closed(ray.get_runtime_context().gcs_address)
        yield ray
    finally:
        ray.shutdown()


def check_closed(address: str) -> None:
    """Refuse a cluster that others can reach and that answers without its token."""
    port = address.rpartition(":")[2]
    reachable = [host for host in (_host(address), *_own_addresses()) if not _is_loopback(host)]
    for host in dict.fromkeys(reachable):
        if _listens(host, int(port)) and answers_strangers(f"{host}:{port}"):
            raise ClusterError(
                f"{host}:{port}: expected a Ray cluster that asks for a token, found one that answers anybody who can "
                f"reach it; start it with RAY_AUTH_MODE=token on every machine, see {_HELP}"
            )


def answers_strangers(address: str) -> bool:
    """Whether the cluster answers a process that has no token."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    asked = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address],
        env=known | {"RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    return asked.returncode == 0


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def _keep_strangers_out() -> None:
    """Give the new cluster a token of its own, unless the user has set how it is to be kept."""
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _own_addresses() -> list[str]:
    """The address by which this machine is known on its network, if it is on one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks which way it would go
        except OSError:
            return []
        return [str(probe.getsockname()[0])]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
