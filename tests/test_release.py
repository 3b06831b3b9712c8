"""What is given to users: the files of a release, an environment with the wheel alone, each extra, types, versions."""

import ast
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import pytest

from .conftest import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
FOR_DEVELOPMENT = {"test", "dev", "docs"}
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - FOR_DEVELOPMENT)


def name_of(requirement):
    """The distribution that a requirement such as `psycopg[binary]>=3.2` names, as metadata spell it."""
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-").replace(".", "-")


def run(*command, **options):
    """The output of a command; it fails with all that the command said."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist, and the wheel that was built from the sdist alone."""
    out = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", out, cwd=REPOSITORY)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(out / "unpacked", filter="data")
    (source,) = (out / "unpacked").iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=source)
    return out


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


def make_environment(folder, *reused):
    """A virtual environment that finds nothing but what is installed in it and in the folders `reused`."""
    run(sys.executable, "-m", "venv", folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "reused.pth").write_text("".join(f"{path}\n" for path in reused))
    return folder / "bin" / "python", packages


def test_the_wheel_holds_every_file_of_the_package(wheel):
    tracked = run("git", "ls-files", "src/ecgquorum", cwd=REPOSITORY).splitlines()
    expected = {path.removeprefix("src/") for path in tracked if (REPOSITORY / path).exists()}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("ecgquorum/")}
        metadata = archive.read(f"ecgquorum-{VERSION}.dist-info/METADATA").decode()
    assert expected <= names and "ecgquorum/py.typed" in names
    assert not [name for name in names - expected if not (REPOSITORY / "src" / name).exists()]
    assert f"\nVersion: {VERSION}\n" in metadata and "\nLicense-Expression: Apache-2.0\n" in metadata


def test_twine_accepts_both_files(built):
    run(sys.executable, "-m", "twine", "check", "--strict", *built.glob("ecgquorum-*.*"))


def test_the_version_is_in_one_place():
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == VERSION, "CITATION.cff"
    release = VERSION.partition(".dev")[0]
    assert f"## [{release}]" in (REPOSITORY / "CHANGELOG.md").read_text()
    written = [path for path in (REPOSITORY / "src").rglob("*.py") if f'"{release}' in path.read_text()]
    assert not written, "the code asks importlib.metadata"


def test_every_import_is_a_declared_dependency():
    groups = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in EXTRAS)]
    declared = {name_of(requirement) for group in groups for requirement in group}
    distributions = packages_distributions()
    modules = set()
    for path in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules.add(node.module.partition(".")[0])
    others = modules - set(sys.stdlib_module_names) - {"ecgquorum"}
    undeclared = {name for name in others if not {name_of(one) for one in distributions.get(name, [name])} & declared}
    assert undeclared <= {"starlette"}, "starlette is the part of FastAPI that its users import"


IMPORT_ALL = """
import importlib, json, pkgutil, sys, ecgquorum
missing = {}
for module in pkgutil.walk_packages(ecgquorum.__path__, "ecgquorum."):
    if module.name.endswith((".__main__", ".migrations.env")):
        continue
    try:
        importlib.import_module(module.name)
    except Exception as error:
        cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        if not isinstance(cause, ModuleNotFoundError):
            raise
        missing[module.name] = cause.name
print(json.dumps(missing))
"""

IMPORT_DISTRIBUTIONS = """
import importlib, sys
from importlib.metadata import packages_distributions
wanted = set(sys.argv[1:])
for module, distributions in packages_distributions().items():
    found = {name.lower().replace("_", "-").replace(".", "-") for name in distributions} & wanted
    if found and not module.startswith("_"):
        importlib.import_module(module)
        wanted -= found
assert not wanted, f"not installed: {wanted}"
"""


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory):
    """An environment with the wheel and its dependencies, without extras: python, its packages."""
    python, packages = make_environment(tmp_path_factory.mktemp("core") / "venv")
    run(python, "-m", "pip", "install", "--quiet", "-c", REPOSITORY / "constraints.txt", wheel)
    return python, packages


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_wheel_works_without_extras(core, tmp_path):
    python, _ = core
    quiet = {"cwd": tmp_path, "env": {"PATH": str(python.parent), "HOME": str(tmp_path)}}
    assert run(python, "-c", "import ecgquorum; print(ecgquorum.__file__)", **quiet).startswith(str(python.parents[1]))
    assert run(python.with_name("ecgquorum"), "--version", **quiet) == f"ecgquorum {VERSION}\n"
    assert "A (atrial fibrillation)" in run(python.with_name("ecgquorum"), "predict", "sample:af", **quiet)
    missing = json.loads(run(python, "-c", IMPORT_ALL, **quiet))
    optional = {name_of(one) for extra in EXTRAS for one in PROJECT["optional-dependencies"][extra]} | {"starlette"}
    assert {name.partition(".")[0] for name in missing.values()} <= optional, missing


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_installs_what_it_needs(extra, core, wheel, tmp_path):
    """With the packages of the core environment reused: the extra finds those and its own, none of another extra."""
    _, packages = core
    python, _ = make_environment(tmp_path / "venv", packages)
    run(python, "-m", "pip", "install", "--quiet", "-c", REPOSITORY / "constraints.txt", f"{wheel}[{extra}]")
    quiet = {"cwd": tmp_path, "env": {"PATH": str(python.parent), "HOME": str(tmp_path)}}
    wanted = [name_of(one) for one in PROJECT["optional-dependencies"][extra]]
    run(python, "-c", IMPORT_DISTRIBUTIONS, *wanted, **quiet)
    missing = json.loads(run(python, "-c", IMPORT_ALL, **quiet))
    assert not set(missing.values()) & set(wanted), missing


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_types_of_the_installed_package_satisfy_a_strict_program(wheel, tmp_path):
    """`make check` holds the same program against the source; this also needs `py.typed` in the wheel."""
    python, packages = make_environment(tmp_path / "venv", sysconfig.get_path("purelib"))
    shutil.unpack_archive(wheel, packages, "zip")
    options = ["--strict", "--python-executable", python, "--cache-dir", tmp_path / "cache", "--config-file="]
    program = REPOSITORY / "tests/typing/consumer/use.py"
    assert "no issues" in run(sys.executable, "-m", "mypy", *options, program, cwd=tmp_path, env={"PATH": ""})
