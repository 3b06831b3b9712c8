"""Equations without scripts: `$$ ... $$` blocks and `$...$` in lines become MathML, which browsers draw."""

import re

from latex2mathml.converter import convert

_FENCE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^\$\$(.+?)\$\$$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?![\w$])")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Convert the equations of a page, but not what is in code."""
    parts = _FENCE.split(markdown)
    parts[::2] = [_convert(part) for part in parts[::2]]
    return "".join(parts)


def _convert(text: str) -> str:
    text = _BLOCK.sub(lambda found: f'<div class="equation">{convert(found[1].strip(), display="block")}</div>', text)
    return _INLINE.sub(lambda found: f'<span class="inline-math">{convert(found[1])}</span>', text)
