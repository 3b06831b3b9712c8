"""The progress protocol: reports reach the console, prefixed by their stage."""

import io
import subprocess
import sys

from rich.console import Console

from ecgquorum.progress import NO_PROGRESS, StageProgress, console_progress
from tests.conftest import Recorder


def test_no_progress_ignores_every_report():
    NO_PROGRESS.update("member 0", 1, 2)
    NO_PROGRESS.log("a line")


def test_the_console_shows_text_and_share_and_keeps_lines():
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    with console_progress("training", console) as progress:
        progress.update("member 0", 30, 40)
        progress.log("epoch [1] loss 0.5")
        progress.update("testing [member 1]", 1, 4)  # a new stage with a total of its own
    shown = written.getvalue()  # the bar is drawn at least once more at the end of the block
    assert "epoch [1] loss 0.5" in shown
    assert "testing [member 1]" in shown and "25%" in shown


def test_lines_stay_where_there_is_no_terminal():
    written = io.StringIO()
    with console_progress("training", Console(file=written, width=20)) as progress:
        progress.log("a line that is longer than the console is wide")
    assert "a line that is longer than the console is wide" in written.getvalue()


def test_a_stage_puts_its_name_in_front():
    recorder = Recorder()
    stage = StageProgress(recorder, "dec+part")
    stage.update("member 1", 2, 6)
    stage.log("found")
    assert recorder.updates == [("dec+part  member 1", 2, 6)]
    assert recorder.lines == ["dec+part  found"]


def test_rich_is_imported_only_to_draw():
    code = "import sys, ecgquorum.progress; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
