"""Every Python and console block of the documentation runs, in the order of its page, unless it says why not."""

import shutil
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

from ecgquorum import SplitOptions, build_cohort, open_source, simulate, train_ensemble, write
from ecgquorum.recordings import READERS

from ..conftest import REPOSITORY, make_once, try_one_weight
from .code_blocks import find_blocks, run_page

DOCS = REPOSITORY / "docs"
PAGES = sorted([REPOSITORY / "README.md", *DOCS.rglob("*.md")])
TUTORIALS = sorted([*(DOCS / "start").glob("*.md"), *(DOCS / "tutorials").glob("*.md")])

NOT_RUN = {  # reason -> number of blocks; a new one needs a reason, and is counted here
    "installs packages": 4,
    "starts a server": 1,
    "takes hours": 3,
    "needs your recordings": 1,
    "needs several processes": 2,
}
PRINTED = {  # parts of what a page's Python blocks print
    "README.md": ["('A',)"],
    "docs/how-to/evaluate.md": ["pgd 5 on ensemble, 10 µV"],
    "docs/reference/metrics.md": ["0.060 (0.020 to 0.120)"],
    "docs/reference/corruptions.md": ["mains, severity 5", "muscle, severity 2", "all corruptions"],
    "docs/explanation/uncertainty.md": ["fitted"],
    "docs/tutorials/4-evaluate.md": ["pgd on ensemble, 20 µV", "baseline less part"],
    "docs/tutorials/5-triage.md": ["f deferred", "flat line on II"],
    "docs/tutorials/6-extend.md": ["RandomSigns on member 0, 50 µV", "Tremor, severity 3", "(1, 1500)"],
}
WRITTEN = {  # files that a page leaves
    "docs/start/five-minutes.md": ["af.png", "sorted/worklist.html"],
    "docs/tutorials/2-attack.md": ["attacked.png"],
    "docs/tutorials/3-train.md": ["mine/card.json", "runs/dec+part/history.csv"],
    "docs/tutorials/4-evaluate.md": ["scorecard.json", "accuracy.png", "report/report.html", "mine/card.json"],
    "docs/tutorials/5-triage.md": ["sorted/worklist.csv"],
    "docs/how-to/evaluate.md": ["scorecard.json", "report/report.html", "merged.json"],
    "docs/how-to/plot.md": ["ecg.pdf", "ecg.svg", "why.png", "page.pdf", "map.png"],
    "docs/how-to/triage.md": ["sorted/fhir/Observation.ndjson"],
    "docs/how-to/onnx.md": ["model.onnx"],
    "docs/explanation/uncertainty.md": ["mine/card.json"],
}
SMALLER = {  # text of a page -> what runs in its place, unless the tests are slow ones
    "docs/tutorials/2-attack.md": [("--records 240", "--records 80"), ("range(15)", "range(3)")],
    "docs/tutorials/3-train.md": [("--records 240", "--records 80"), ("epochs=15", "epochs=2")],
    "docs/tutorials/4-evaluate.md": [("--records 240", "--records 80"), ("epochs = 8", "epochs = 2")],
}

FAST_PAGES = ("docs/start/five-minutes.md", "docs/how-to/onnx.md")

PAGES_NOT_RUN = [  # their commands are still checked by test_pages.py
    *("docs/desk.md", "docs/scaling.md"),  # servers, tokens, clusters
    *("docs/experiments.md", "docs/models/*.md"),  # how to repeat what took hours
    "docs/reference/cli.md",  # usage lines
    "docs/reliability.md",  # an hour
]


@pytest.fixture(autouse=True)
def own_readers(monkeypatch):
    """A page that registers a reader does not change other tests."""
    monkeypatch.setattr(READERS, "_registered", {})


def has_code(page):
    return any(not block.reason for block in find_blocks(page, "python", "console"))


def name_of(page):
    return str(page.relative_to(REPOSITORY))


def that_have_code(pages):
    """A parameter for each; most pages are long."""
    names = {page: name_of(page) for page in pages if has_code(page)}
    return [
        pytest.param(page, id=name, marks=() if name in FAST_PAGES else pytest.mark.long)
        for page, name in names.items()
    ]


def run_and_check(page, ecgquorum, smaller=()):
    _, printed = run_page(page, ecgquorum, smaller)
    assert [text for text in PRINTED.get(name_of(page), ()) if text not in printed] == []
    assert [name for name in WRITTEN.get(name_of(page), ()) if not Path(name).is_file()] == []


def is_run(page):
    return not any(fnmatch(name_of(page), pattern) for pattern in PAGES_NOT_RUN)


@pytest.fixture(scope="session")
def example_folder(tmp_path_factory, tiny_recipe):
    """What how-to and reference pages take for granted: `cohort`, `run`, `recordings`."""

    def make(out):
        source = open_source("synthetic:physionet2017", records=110, seconds=5.0)
        cohort, _ = build_cohort(source, out / "cohort", split=SplitOptions(tune_share=0.5))
        with pytest.MonkeyPatch.context() as patch:
            try_one_weight(patch)
            train_ensemble(tiny_recipe, cohort, out / "run", device="cpu")
        (out / "recordings").mkdir()
        for seed, label in enumerate("NAO"):
            recording = simulate(label, seed=seed, seconds=10.0, leads=("ECG",), rate_hz=300.0).recording
            write(recording, out / "recordings" / f"{label}.hea")

    return make_once(tmp_path_factory, "example-folder", make)


@pytest.mark.parametrize("page", that_have_code(TUTORIALS))
def test_tutorials_run_from_an_empty_folder(page, ecgquorum, tmp_path, monkeypatch, no_figures):
    smaller = SMALLER.get(name_of(page), ())
    assert all(text in page.read_text() for text, _ in smaller)
    monkeypatch.chdir(tmp_path)
    run_and_check(page, ecgquorum, smaller)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLER)
def test_tutorials_run_at_full_size(name, ecgquorum, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_and_check(REPOSITORY / name, ecgquorum)


OTHERS = [one for one in PAGES if one not in TUTORIALS and is_run(one)]


@pytest.mark.parametrize("page", that_have_code(OTHERS))
@pytest.mark.usefixtures("no_figures", "quick_risk")
def test_pages_run_beside_a_cohort_and_a_run(page, ecgquorum, tmp_path, monkeypatch, example_folder):
    monkeypatch.chdir(shutil.copytree(example_folder, tmp_path / "here"))
    run_and_check(page, ecgquorum)


def test_blocks_that_do_not_run_are_few_and_counted():
    pages = [page for page in PAGES if is_run(page)]
    assert Counter(block.reason for page in pages for block in find_blocks(page) if block.reason) == NOT_RUN


def test_toml_in_the_documentation_is_valid():
    for page in PAGES:
        for block in find_blocks(page, "toml"):
            tomllib.loads(block.code)
