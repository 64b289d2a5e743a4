"""Tables and lines that fit the screen: columns are dropped or shortened, numbers never."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from ringhaul.plain_text import as_line

#: Blanks between columns.
GAP = 2
_ELLIPSIS = "…"
#: Parts of a line of figures are this far apart, or further.
_PARTS = re.compile(r"   +(?=\S)")


@dataclass(frozen=True)
class Column:
    """A column of a table, and what becomes of it if there is little room."""

    name: str
    #: Columns with the highest value are dropped first; 0: never.
    goes: int = 0
    #: Width to which it may be shortened before any column is dropped; 0: never shortened.
    short: int = 0
    right: bool = False
    #: A shortened value keeps both of its ends, since values may differ only at their end.
    ends: bool = False


def screen_width(stream: TextIO) -> int | None:
    """Return the width of the terminal that a stream writes to; None if it writes to none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def fit_columns(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None
) -> dict[int, int]:
    """Return the columns to show and their widths, by index, in order. `width`: characters of a
    line of the screen; None: any."""
    whole = [
        max(cell_len(cell) for cell in (column.name, *(row[i] for row in rows)))
        for i, column in enumerate(columns)
    ]
    if width is None:
        return dict(enumerate(whole))
    wide = [min(n, column.short or n) for n, column in zip(whole, columns, strict=True)]
    kept = set(range(len(columns)))

    def spare() -> int:
        return width - sum(wide[i] + GAP for i in kept) + GAP

    for i in sorted(kept, key=lambda i: -columns[i].goes):
        if columns[i].goes and spare() < 0:
            kept.remove(i)
    # Shortened columns share the remaining room.
    while spare() > 0 and (cut := [i for i in sorted(kept) if wide[i] < whole[i]]):
        for i in cut[: spare()]:
            wide[i] += 1
    return {i: wide[i] for i in sorted(kept)}


def shorten(text: str, width: int, *, ends: bool = False) -> str:
    """Return the text in at most `width` columns, with an ellipsis for what is left out: the end,
    or with `ends` the middle."""
    if cell_len(text) <= width:
        return text
    tail = ""
    if ends:
        room = (width - 1) // 2
        for character in reversed(text):
            if cell_len(character + tail) > room:
                break
            tail = character + tail
    head = set_cell_size(text, max(width - 1 - cell_len(tail), 0)).rstrip()
    return f"{head}{_ELLIPSIS}{tail}"


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int | None
) -> list[str]:
    """Return a table as lines, each with a blank in front, that fit a screen of `width` columns;
    None: it is as wide as its values."""
    shown = [[as_line(cell) for cell in row] for row in rows]
    widths = fit_columns(columns, shown, None if width is None else width - 1)

    def line(cells: Sequence[str]) -> str:
        texts = []
        for i, wide in widths.items():
            text = shorten(cells[i], wide, ends=columns[i].ends)
            blanks = " " * (wide - cell_len(text))
            texts.append(blanks + text if columns[i].right else text + blanks)
        return (" " + (" " * GAP).join(texts)).rstrip()

    return [line([column.name for column in columns]), *map(line, shown)]


def wrap_figures(line: str, width: int | None) -> list[str]:
    """Return a line of figures as lines that fit the screen, broken only between two figures."""
    if width is None or cell_len(line) <= width:
        return [line]
    breaks = [found for found in _PARTS.finditer(line) if found.start() > 0]
    fitting = [found for found in breaks if cell_len(line[: found.start()]) <= width]
    if not fitting:
        return [line]
    last = fitting[-1]
    return [line[: last.start()], *wrap_figures(f" {line[last.end() :]}", width)]
