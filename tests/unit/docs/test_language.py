"""The manual can be read: no sentence and no cell of a table is too long.

The decisions (docs/adr) and the change log are records for maintainers, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from manual.site import ROOT, pages
from tests.cases import each
from tests.manual_pages import name_of, prose_of, text_of

WORDS_MAX = 35
CELL_MAX = 300
PAGES = [
    page
    for page in pages()
    if page.name != "CHANGELOG.md" and ROOT / "docs" / "adr" not in page.parents
]
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]+\)")
#: Where a sentence ends: after a full stop and closing characters, before a blank.
_END = re.compile(r"(?<=[.!?])[)*\"']*\s+(?=\S)")
#: Full stops that end no sentence.
_SHORT = re.compile(r"\b(e\.g|i\.e|vs|etc|no|St)\.")


def blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs, items of lists, headings and cells of a page, each on one line."""
    block: list[str] = []
    for line in [*_FENCE.sub("", text).splitlines(), ""]:
        begins = re.match(r"\s*([-*+]|\d+\.|#+|>)\s", line)
        if not line.strip() or begins or line.startswith("|"):
            if block:
                yield " ".join(block)
            block = []
        if line.startswith("|"):
            yield from cells(line)
        elif line.strip():
            block.append(re.sub(r"^\s*([-*+]|\d+\.|#+|>)\s", "", line).strip())


def cells(row: str) -> list[str]:
    """Return the cells of a table's row, without blanks around them."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def shown(text: str) -> str:
    """Return a text as a reader sees it: links without their targets."""
    return _LINK.sub(r"\1", text)


def sentences(block: str) -> list[str]:
    """Return the sentences of a block."""
    return _END.split(_SHORT.sub(r"\1", shown(block)))


def words(sentence: str) -> int:
    """Return the number of words; a piece of code counts as its parts."""
    return len([word for word in sentence.split() if re.search(r"\w", word)])


@each("page", PAGES, ids=name_of)
def test_no_sentence_is_too_long(page: Path) -> None:
    long = [
        sentence
        for block in blocks(text_of(page))
        for sentence in sentences(block)
        if words(sentence) > WORDS_MAX
    ]
    assert not long, "\n".join(f"{words(text)} words: {text}" for text in long)


@each("page", PAGES, ids=name_of)
def test_no_cell_of_a_table_is_too_long(page: Path) -> None:
    lines = prose_of(page).splitlines()
    long = [
        cell
        for line in lines
        if line.startswith("|")
        for cell in map(shown, cells(line))
        if len(cell) > CELL_MAX
    ]
    assert not long, "\n".join(f"{len(text)} characters: {text}" for text in long)


def test_the_checks_can_fail() -> None:
    page = (
        f"- {'word ' * 36}end. Next\n  line.\n\n```\n{'code ' * 50}\n```\n| {'c' * 301} | `a|b` |\n"
    )
    found = list(blocks(page))
    assert [words(s) for block in found for s in sentences(block)] == [37, 2, 1, 1, 1]
    assert max(map(len, cells("| a \\| b | c |"))) == len("a \\| b")
    assert shown("see [this](there.md#x) now") == "see this now"
    assert words("`a --b c` - of 3 [x]") == 6
