"""The leaf columns of a row group that are read, as the footer describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.formats.parquet_footer import Footer

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
#: Bytes of a value in Arrow, if it is wider than in the file: a decimal, and a date or time that
#: its writer had in 64 bits.
_DECIMAL_BYTES = 32
_WIDTH_MIN = 8


class Leaf(NamedTuple):
    """A leaf column of a row group: values of one physical type."""

    path: str
    place: int  #: index of its column among the wanted columns
    physical: str
    flat: bool  #: not inside a list
    width: int  #: bytes of each value in Arrow; 0: they vary
    values_count: int  #: by the footer
    plain_bytes: int  #: by the footer: bytes of its pages, unpacked
    delta: bool  #: some pages hold differences, which cannot be read as indices
    codec: str
    start: int  #: offset of its bytes in the file
    stored_bytes: int


def leaves_of(footer: Footer, group: int, names: Sequence[str]) -> list[Leaf]:
    """Return the leaves of the columns `names` in a row group, in the order of the file.

    Raises `Unreadable` for a leaf that cannot be read.
    """
    found = []
    for number, path in enumerate(footer.paths):
        place = place_of(path, names)
        if place is None:
            continue
        chunk = footer.chunk(group, number)
        column = footer.schema.column(number)
        physical = chunk.physical
        width = int(column.length) if physical == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(physical)
        if width:
            decimal = physical != "INT96" and column.logical_type.type == "DECIMAL"
            width = max(width, _DECIMAL_BYTES if decimal else _WIDTH_MIN)
        found.append(
            Leaf(
                path=path,
                place=place,
                physical=physical,
                flat=column.max_repetition_level == 0,
                width=width or 0,
                values_count=chunk.values_count,
                plain_bytes=max(0, chunk.unpacked_bytes),
                delta=chunk.delta,
                codec=chunk.codec,
                start=chunk.start,
                stored_bytes=chunk.stored_bytes,
            )
        )
    return found


def check_readable(footer: Footer, names: Sequence[str]) -> None:
    """Raise `Unreadable` if one of the columns `names` cannot be read in some row group."""
    for number, path in enumerate(footer.paths):
        if place_of(path, names) is not None:
            footer.check(number)


def place_of(path: str, names: Sequence[str]) -> int | None:
    """Return the index in `names` of the column that a leaf belongs to; None: no column."""
    path += "."
    for place, name in enumerate(names):
        if path.startswith(name) and path[len(name)] == ".":
            return place
    return None
