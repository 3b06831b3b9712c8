"""Mutation check: do the tests notice small errors in losses, attacks, metrics, triage policies and readers?

    python -m tests.mutate --seed 1 --out runs/mutations      # or `make mutate`

One that a test has killed before, according to `mutations.json`, is not tried again: after new tests, survivors are.
Draws as many mutations from each group of source files, applies each to a copy of the package, and runs the tests that
belong to the file until the first failure. A mutation that no test notices has survived. Writes `mutations.json` and
`mutations.md`; the exit code is 1 if more than two survived.
"""

import argparse
import compileall
import difflib
import importlib
import json
import multiprocessing
import os
import py_compile
import random
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

from .mutations import Mutation, find_mutations

REPOSITORY = Path(__file__).parent.parent
PACKAGE = "src/ecgquorum"

GROUPS = {
    "losses": (
        ["losses.py"],
        ["tests/test_losses.py", "tests/test_gradient_alignment.py", "tests/training/strategies/test_dverge.py"],
    ),
    "attacks": (["attacks/*.py"], ["tests/attacks", "tests/contracts/test_attacks.py"]),
    "metrics": (["metrics/*.py"], ["tests/metrics"]),
    "policies": (
        ["triage/policies.py", "triage/policy_fit.py", "triage/decide.py", "triage/urgency.py"],
        ["tests/triage/test_policies.py", "tests/triage/test_urgency.py", "tests/triage/test_decide.py"],
    ),
    "readers": (
        ["recordings/formats/*.py"],
        ["tests/recordings/formats", "tests/contracts/test_formats.py", "tests/recordings/test_readers.py"],
    ),
}
"""name -> (source files, tests that must notice a change of them)"""

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "metrics/selective.py",
        "taken = np.where(margin[:, 1:] >= -_TOLERANCE, size, np.clip(affordable, 0, size))",
        ">= → >",
    ): "differs only where a margin of errors is -1e-9 to the last bit; margins are whole errors less rounding",
}
"""(file, line of source, mutation) -> why no test can notice it; such mutations are not drawn"""

LIMIT_S = 900


def draw_mutations(total: int, seed: int) -> list[tuple[str, Mutation]]:
    """As many from each group, each from all places of the group's files with equal chance."""
    rng = random.Random(seed)  # noqa: S311
    drawn = []
    for number, (group, (patterns, _)) in enumerate(GROUPS.items()):
        files = sorted(path for pattern in patterns for path in (REPOSITORY / PACKAGE).glob(pattern))
        found = [one for path in files for one in find_mutations(path, path.relative_to(REPOSITORY / PACKAGE))]
        rng.shuffle(found)
        kept = [one for one in found if one.key not in EQUIVALENT]
        share = total // len(GROUPS) + (number < total % len(GROUPS))
        drawn += [(group, one) for one in kept[:share]]
    return drawn


def tests_of(group: str, file: Path) -> list[str]:
    """The tests of the file itself first, then those of its group."""
    own = Path("tests") / file.parent / f"test_{file.name}"
    wanted = [str(own), *GROUPS[group][1]]
    return list(dict.fromkeys(path for path in wanted if (REPOSITORY / path).exists()))


def preload() -> None:
    """Load once what most tests need: each mutation is tried in a fork of this process, which has no ecgquorum yet."""
    for name in (
        "torch",
        "scipy.signal",
        "scipy.optimize",
        "sklearn.metrics",
        "wfdb",
        "matplotlib.pyplot",
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)


def run_tests(copy: Path, tests: list[str]) -> tuple[str, str, float]:
    """Outcome (passed, failed, timeout), the first failing test, and CPU seconds."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        process = context.Process(target=_run_pytest, args=(copy, tests, said))
        before = os.times()
        process.start()
        process.join(LIMIT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            return "timeout", "", float(LIMIT_S)
        after = os.times()
        lines = said.read_text(errors="replace").splitlines()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    noticed = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED", "ERROR"))]
    first = noticed[0].split(maxsplit=1)[1] if noticed else lines[-1] if lines else "no output"
    return ("passed" if process.exitcode == 0 else "failed"), first, seconds


def _run_pytest(copy: Path, tests: list[str], said: Path) -> None:
    for number in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    import pytest

    code = 0
    for part in (
        tests[:1],
        tests[1:],
    ):  # in one call pytest would put the tests of the file among those of their folder
        code = code or (
            int(pytest.main([*part, "-m", "not slow", "-x", "-q", "-p", "no:cacheprovider", "--tb=no"])) if part else 0
        )
    os._exit(code)


def try_mutation(copy: Path, group: str, mutation: Mutation) -> dict[str, object]:
    """Apply it to the copy, run its tests, and restore the copy."""
    path = copy / "ecgquorum" / mutation.file
    source = path.read_text()
    changed = mutation.apply(source)
    path.write_text(changed)
    try:
        outcome, first, seconds = run_tests(copy, tests_of(group, mutation.file))
    finally:
        path.write_text(source)
    diff = difflib.unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=0)
    return {
        "name": mutation.name,
        "group": group,
        "file": str(mutation.file),
        "line": mutation.line,
        "mutation": mutation.kind,
        "source": mutation.key[1],
        "outcome": "survived" if outcome == "passed" else "killed",
        "by": "time limit" if outcome == "timeout" else first if outcome == "failed" else "",
        "cpu_s": round(seconds, 1),
        "diff": [line for line in diff if not line.startswith(("---", "+++", "@@"))],
    }


def make_copy(folder: Path) -> Path:
    """A copy of the package, compiled files checked by content: mutations follow each other within a second."""
    shutil.copytree(REPOSITORY / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(folder / "src", quiet=2, invalidation_mode=mode)
    return folder / "src"


def killed_before(path: Path) -> dict[str, dict[str, object]]:
    """Rows of an earlier run whose mutations were killed, by name."""
    rows = json.loads(path.read_text())["rows"] if path.is_file() else []
    return {row["name"]: row for row in rows if row["outcome"] == "killed"}


def check_unchanged(copy: Path, groups: set[str]) -> None:
    """The tests of each group pass without a mutation; else no result would mean anything."""
    for group in sorted(groups):
        outcome, first, seconds = run_tests(copy, [test for test in GROUPS[group][1] if (REPOSITORY / test).exists()])
        print(f"{group}: unchanged: {outcome} in {seconds:.0f} s of CPU", flush=True)
        if outcome != "passed":
            sys.exit(f"the tests of {group} fail without a mutation: {first}")


def write_tables(out: Path, seed: int, rows: list[dict[str, object]]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "mutations.json").write_text(json.dumps({"seed": seed, "rows": rows}, indent=1) + "\n")
    lines = ["| file | change | outcome |", "|---|---|---|"]
    for row in rows:
        removed, added = (" ".join(part[1:].strip() for part in row["diff"] if part[0] == sign) for sign in "-+")
        cells = (f"`{text}`".replace("|", "\\|") if text else "(removed)" for text in (removed, added))
        lines.append(f"| {row['file']}:{row['line']} | {' → '.join(cells)} | {row['outcome']} |")
    (out / "mutations.md").write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--group", choices=GROUPS, help="only this group")
    parser.add_argument("--out", type=Path, default=Path("runs/mutations"))
    parser.add_argument("--sound", action="store_true", help="the tests are known to pass: do not run them unchanged")
    parser.add_argument("--list", action="store_true", help="show the mutations and run nothing")
    arguments = parser.parse_args()
    drawn = draw_mutations(arguments.count, arguments.seed)
    drawn = [one for one in drawn if arguments.group in (None, one[0])]
    if arguments.list:
        for group, one in drawn:
            print(f"{group:9} {one.file}:{one.line}: {one.kind}: {one.key[1]}")
        return 0
    known = killed_before(arguments.out / "mutations.json")
    rows: list[dict[str, object]] = []
    preload()
    with tempfile.TemporaryDirectory() as folder:
        copy = make_copy(Path(folder))
        if not arguments.sound:
            check_unchanged(copy, {group for group, mutation in drawn if mutation.name not in known})
        for number, (group, mutation) in enumerate(drawn, start=1):
            row = known.get(mutation.name) or try_mutation(copy, group, mutation)
            rows.append(row)
            stamp = time.strftime("%H:%M:%S")
            print(f"{stamp} {number}/{len(drawn)} {row['outcome']}: {row['file']}:{row['line']} ({row['mutation']})")
            print("\n".join(row["diff"]), f"\n  {row['by']} [{row['cpu_s']} s]", flush=True)
            write_tables(arguments.out, arguments.seed, [*rows, *(r for n, r in known.items() if r not in rows)])
    write_tables(arguments.out, arguments.seed, rows)
    survived = sum(row["outcome"] == "survived" for row in rows)
    print(f"{len(rows) - survived} of {len(rows)} killed")
    return int(survived > 2)


if __name__ == "__main__":
    sys.exit(main())
