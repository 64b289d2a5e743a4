"""Where the fields of fixed-width records are: a list of columns, or a layout file.

Positions are numbers of characters, from 1; both ends belong to the field. What lies between
fields, and after the last one, is not read. Fields must not overlap.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ringhaul.errors import UsageError

#: At which ends of a field blanks are dropped.
FIELD_TRIMS = ("both", "left", "right", "none")
#: A larger layout file is data given by mistake.
LAYOUT_BYTES_MAX = 4 << 20
FIELDS_MAX = 100_000
#: No record is longer: see `dialect.RECORD_BYTES_MAX`.
POSITION_MAX = 2**27
_SPAN = re.compile(r" *([0-9]{1,9}) *(?:- *([0-9]{1,9}) *)?")
_HEADER = ("name", "first", "last")


class FixedField(NamedTuple):
    """A field of a fixed-width record."""

    name: str
    #: Number of its first character in the record, from 1, and of its last one.
    first: int
    last: int
    #: One of `FIELD_TRIMS`.
    trim: str = "both"

    @property
    def characters(self) -> int:
        """Its width."""
        return self.last - self.first + 1

    @property
    def place(self) -> str:
        """Its positions, for messages."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def parse_columns_at(text: str) -> tuple[FixedField, ...]:
    """Return the fields that `id:1-8,name:9-40:right` describes.

    Raises `UsageError` that names the part at fault.
    """
    fields: list[FixedField] = []
    for part in text.split(","):
        name, *rest = part.split(":")
        span = _SPAN.fullmatch(rest[0]) if rest else None
        if span is None or len(rest) > 2:
            raise UsageError(
                f"{part.strip()!r}: give NAME:FIRST-LAST or NAME:FIRST-LAST:TRIM, as in id:1-8 "
                f"or name:9-40:right; for names with a colon or a comma give a layout file"
            )
        trim = rest[1].strip() if len(rest) == 2 else "both"
        fields.append(_field(name, span[1], span[2] or span[1], trim))
    return _checked(fields)


def parse_layout(data: bytes) -> tuple[FixedField, ...]:
    """Return the fields that a layout file describes: `name,first,last[,trim]` on each line.

    Skips blank lines, lines that begin with #, and a first line that holds these very words. Raises
    `UsageError` that names the line at fault.
    """
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"is not UTF-8 text (byte {error.start})") from error
    fields: list[FixedField] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            parts = [part.strip() for part in next(csv.reader([line], strict=True))]
        except csv.Error as error:
            raise UsageError(f"line {number}: {error}") from error
        if not fields and tuple(part.lower() for part in parts[:3]) == _HEADER:
            continue
        if len(parts) not in (3, 4):
            raise UsageError(
                f"line {number}: has {len(parts)} parts; give name,first,last or "
                "name,first,last,trim"
            )
        try:
            fields.append(_field(parts[0], parts[1], parts[2], parts[3] if parts[3:] else "both"))
        except UsageError as error:
            raise UsageError(f"line {number}: {error}") from error
    return _checked(fields)


def _field(name: str, first: str, last: str, trim: str) -> FixedField:
    name = name.strip()
    numbers = [int(part) if re.fullmatch("[0-9]{1,9}", part) else 0 for part in (first, last)]
    if not name:
        raise UsageError(f"the field at {first}-{last} has no name")
    if not all(1 <= number <= POSITION_MAX for number in numbers):
        raise UsageError(
            f"{name!r} is at {first}-{last}: positions are numbers from 1 to {POSITION_MAX:,}"
        )
    if numbers[1] < numbers[0]:
        raise UsageError(
            f"{name!r} is at {first}-{last}, which ends before it begins: give the first position, "
            "then the last one"
        )
    if trim not in FIELD_TRIMS:
        raise UsageError(f"{name!r}: {trim!r} is not one of {', '.join(FIELD_TRIMS)}")
    return FixedField(name, numbers[0], numbers[1], trim)


def _checked(fields: Sequence[FixedField]) -> tuple[FixedField, ...]:
    """Return the fields. Raises `UsageError` for fields that overlap or have the same name."""
    if not fields:
        raise UsageError("names no field: give name,first,last for each")
    if len(fields) > FIELDS_MAX:
        raise UsageError(f"has {len(fields):,} fields, and at most {FIELDS_MAX:,} are read")
    seen: dict[str, FixedField] = {}
    for field in fields:
        other = seen.setdefault(field.name, field)
        if other is not field:
            raise UsageError(f"{field.name!r} is there twice, at {other.place} and {field.place}")
    for one, other in pairwise(sorted(fields, key=lambda field: field.first)):
        if other.first <= one.last:
            raise UsageError(
                f"{one.name!r} at {one.place} and {other.name!r} at {other.place} overlap: a "
                "character belongs to one field"
            )
    return tuple(fields)
