"""Pages of the manual, each read and taken apart once in a test process."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from manual.site import ROOT

_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A block of code: its language, and its text without the fences."""

    language: str
    body: str


@cache
def text_of(page: Path) -> str:
    """Return the text of a page."""
    return page.read_text()


@cache
def blocks_of(page: Path) -> tuple[Block, ...]:
    """Return the blocks of code of a page, in order."""
    return tuple(Block(language, body) for _, language, body in _FENCE.findall(text_of(page)))


@cache
def prose_of(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return _FENCE.sub("", text_of(page))


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub creates them."""
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
        for heading in _HEADING.findall(prose_of(page))
    )


def name_of(page: Path) -> str:
    """Return the path of a page from the top of the repository."""
    return str(page.relative_to(ROOT))
