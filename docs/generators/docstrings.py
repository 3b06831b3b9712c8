"""Docstrings as Markdown: lines such as `epochs:  number of passes` become a list, a file's own names become code.

mkdocstrings loads `DocstringLists` as an extension of Griffe; `recipe_keys.py` uses `described_names`.
"""

import re
from collections.abc import Iterator
from typing import Any

try:
    from griffe import Extension
except ImportError:  # recipe_keys.py and its test need no Griffe
    Extension = object

_NAME = re.compile(r"^(?P<names>[a-z_][\w.]*(?:, [a-z_][\w.]*)*): +(?P<text>\S.*)$")
_INLINE = re.compile(r" · (?=[a-z_]\w*(?:, [a-z_]\w*)*: )")


def described_names(docstring: str) -> Iterator[tuple[str | None, str]]:
    """Split a docstring into (names, text) for each described name, and (None, line) for each other line."""
    name: str | None = None
    text: list[str] = []
    for line in docstring.splitlines():
        found = _NAME.match(line)
        if name is not None and line.startswith("  ") and line.strip():
            text.append(line.strip())
            continue
        if name is not None:
            yield name, " ".join(text)
            name = None
        if not found:
            yield None, line
            continue
        *others, last = _INLINE.split(line)
        for other in others:
            first, _, rest = other.partition(":")
            yield first, rest.strip()
        first, _, rest = last.partition(":")
        name, text = first, [rest.strip()]
    if name is not None:
        yield name, " ".join(text)


def to_markdown(docstring: str) -> str:
    """Write a docstring as Markdown."""
    lines: list[str] = []
    in_list = False
    for names, text in described_names(docstring):
        if names is None:
            lines += ["", text] if in_list and text else [text]
            in_list = False
            continue
        code = ", ".join(f"`{name}`" for name in names.split(", "))
        lines += [*([] if in_list else [""]), f"- {code}: {text}"]
        in_list = True
    return "\n".join(lines)


class DocstringLists(Extension):  # type: ignore[misc, valid-type]
    """Rewrite the docstring of every object when Griffe has parsed it."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
