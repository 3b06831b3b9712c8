"""Count what a triage from a bucket costs more than one from a folder: CPU time and requests.

    python -m benchmarks.storage [--recordings N]

The S3 server of the tests runs in a process of its own. Times are CPU time, so the machine need not be idle.
"""

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.triage import write_recordings


def serve(connection: Connection, folder: Path, cache: Path) -> None:
    """Run the server: sends its environment, and after every message the requests since the last one."""
    from tests.storage.s3_server import S3Server

    server = S3Server("bucket")
    server.put_folder("bucket", "2026", folder)
    connection.send(server.environment(cache))
    while connection.recv():
        connection.send(dict(server.requests))
        server.requests.clear()


def run_triage(place: str, out: str, environment: dict[str, str]) -> float:
    """Triage in a process of its own; returns its CPU seconds, with those of its readers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ("--out", out, "--budget", "10%", "--plots", "0", "--quiet")
    command = [sys.executable, "-m", "ecgquorum", "triage", place, *options]
    subprocess.run(command, env=os.environ | environment, check=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=512)
    n = parser.parse_args().recordings
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "in"
        write_recordings(folder, n)
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        server = context.Process(target=serve, args=(theirs, folder, Path(scratch) / "cache"), daemon=True)
        server.start()
        environment = ours.recv()
        print("| | CPU s | ms a recording | requests | a recording |\n|---|---:|---:|---:|---:|")
        for name, place, out in (
            ("folder to folder", str(folder), str(Path(scratch) / "out")),
            ("bucket to bucket", "s3://bucket/2026", "s3://bucket/sorted"),
            ("the same again: nothing is new", "s3://bucket/2026", "s3://bucket/sorted"),
        ):
            seconds = run_triage(place, out, environment)
            ours.send(True)
            requests = ours.recv()
            total = sum(requests.values())
            print(f"| {name} | {seconds:.1f} | {1000 * seconds / n:.1f} | {total} | {total / n:.2f} |")
            print(f"requests: {json.dumps(requests)}", file=sys.stderr)
        ours.send(False)
        server.join()


if __name__ == "__main__":
    main()
