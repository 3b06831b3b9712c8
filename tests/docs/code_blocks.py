"""Code in documentation pages: find the blocks, and run those of a page in order."""

import contextlib
import io
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^>]*) -->\n+)?^```(?P<language>\w+)\n(?P<code>.*?)^```", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page; `reason` says why a test does not run it, and is empty for one that runs."""

    page: Path
    line: int
    language: str
    code: str
    reason: str

    @property
    def commands(self) -> list[str]:
        """The commands of a console block, without comments; a line that ends in a backslash goes on."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [line for line in lines if shlex.split(line, comments=True)]


def find_blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, or all."""
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start("code")), found["language"], found["code"], found["reason"] or "")
        for found in _BLOCK.finditer(text)
        if not languages or found["language"] in languages
    ]


def run_page(page: Path, ecgquorum, smaller: Sequence[tuple[str, str]] = ()) -> tuple[dict, str]:
    """Run the Python and console blocks of a page in order, in the current folder.

    Returns the names that the Python blocks define, and what they print.

    ecgquorum: runs a command in this process, as the fixture of that name does
    smaller:   text of the page, and what to run in its place
    """
    names: dict = {"__name__": "page"}
    printed = io.StringIO()
    for block in find_blocks(page, "python", "console"):
        if block.reason:
            continue
        for text, instead in smaller:
            block = replace(block, code=block.code.replace(text, instead))
        if block.language == "python":
            code = compile("\n" * block.line + block.code, str(page), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)  # noqa: S102 (our own pages)
            continue
        for command in block.commands:
            program, *arguments = shlex.split(command, comments=True)
            assert program == "ecgquorum", f"{page}: only ecgquorum is run; mark the block, or leave out: {command}"
            ecgquorum(*arguments)
    return names, printed.getvalue()
