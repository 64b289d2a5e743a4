"""Parse the response to a conditional statement: applied, or the current values. Pure.

The response to a conditional INSERT, UPDATE, DELETE or batch is a RESULT of rows whose first column
is the boolean `[applied]`. If it is false, further columns hold the current values: the whole row
for IF NOT EXISTS, the columns of the condition otherwise, with one row for each condition of a
batch. A row that does not exist has no such columns. Since the columns depend on the outcome, the
response carries them as metadata.

Source: "CQL BINARY PROTOCOL v4", section 4.2.5.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from ringhaul.cql.decode import HostilePage, PageDecoder
from ringhaul.cql.frames import FrameError, Reader
from ringhaul.cql.result_codes import (
    CUSTOM,
    GLOBAL_TABLE,
    HAS_MORE_PAGES,
    KIND_ROWS,
    LIST,
    MAP,
    NO_METADATA,
    SET,
    TUPLE,
    UDT,
)
from ringhaul.cql.types import CqlType
from ringhaul.formats.write import OutputFormat
from ringhaul.formats.write.jsonl import JsonLines

#: Most characters reported of the current values.
CURRENT_CHARACTERS_MAX = 500
#: Most responses, and most bytes, that are decoded and reported together.
REPORTED_TOGETHER = 1024
REPORTED_TOGETHER_BYTES = 1 << 20

_SCALARS = {
    0x01: "ascii",
    0x02: "bigint",
    0x03: "blob",
    0x04: "boolean",
    0x05: "counter",
    0x06: "decimal",
    0x07: "double",
    0x08: "float",
    0x09: "int",
    0x0B: "timestamp",
    0x0C: "uuid",
    0x0D: "text",
    0x0E: "varint",
    0x0F: "timeuuid",
    0x10: "inet",
    0x11: "date",
    0x12: "time",
    0x13: "smallint",
    0x14: "tinyint",
}
#: The server's custom types, among them vectors: reported as bytes.
_BYTES = CqlType("blob")
#: Custom types that have their own type code from protocol v5 on.
_CUSTOM_TYPES = {"org.apache.cassandra.db.marshal.DurationType": CqlType("duration")}


class _Head(NamedTuple):
    """The columns of a response, and the first cell of its first row."""

    names: tuple[str, ...]
    types: tuple[CqlType, ...]
    applied: bytes


def applied_row(body: bytes) -> bytes:
    """Return the first cell of the first row of a RESULT with metadata: whether an `IF` held.

    The result has the form of one row with one cell. Raises `FrameError`.
    """
    cell = _head(body).applied
    return struct.pack(">i", len(cell)) + cell


def not_applied(bodies: Sequence[bytes]) -> list[str]:
    """Return text for each response that says which values did not meet the condition.

    `bodies`: bodies of RESULTs with metadata that applied nothing. Raises `FrameError`.
    """
    alike: dict[tuple[tuple[str, ...], tuple[CqlType, ...]], list[int]] = {}
    for place, body in enumerate(bodies):
        head = _head(body)
        alike.setdefault((head.names, head.types), []).append(place)
    texts = [""] * len(bodies)
    for (names, types), places in alike.items():
        for place, words in zip(
            places, _texts(names, types, [bodies[p] for p in places]), strict=True
        ):
            texts[place] = words
    return texts


def _texts(
    names: tuple[str, ...], types: tuple[CqlType, ...], bodies: Sequence[bytes]
) -> Iterator[str]:
    """Yield the texts of `not_applied` for responses with the same columns."""
    if len(names) == 1:
        yield from ["not applied: there is no such row"] * len(bodies)
        return
    try:
        batch, counts = PageDecoder(names, types).decode_many(bodies)
    except HostilePage:
        yield from ["not applied: the current values cannot be read"] * len(bodies)
        return
    current = pa.RecordBatch.from_arrays(batch.columns[1:], names=list(names[1:]))
    lines = iter(
        JsonLines(OutputFormat(kind="jsonl"), names[1:], types[1:]).lines(current).to_pylist()
    )
    for count in counts:
        rows = ", ".join(line.rstrip() for line in islice(lines, count))
        if len(rows) > CURRENT_CHARACTERS_MAX:
            rows = f"{rows[:CURRENT_CHARACTERS_MAX]}..."
        yield f"not applied: the {'row is' if count == 1 else 'rows are'} {rows}"


class Unmet:
    """Collects responses of unmet conditions and reports them together.

    Decoding a thousand responses takes little longer than decoding one.
    """

    def __init__(self, on_unmet: Callable[[int, str], None]) -> None:
        """`on_unmet`: gets the number of a row of values and a text about the current values."""
        self._on_unmet = on_unmet
        self._numbers: list[int] = []
        self._bodies: list[bytes] = []
        self._bytes = 0

    def keep(self, number: int, body: bytes) -> None:
        """Keep the response to the row of values with this number."""
        self._numbers.append(number)
        self._bodies.append(body)
        self._bytes += len(body)
        if len(self._numbers) >= REPORTED_TOGETHER or self._bytes >= REPORTED_TOGETHER_BYTES:
            self.report()

    def report(self) -> None:
        """Report everything that is kept."""
        numbers, bodies = self._numbers, self._bodies
        self._numbers, self._bodies, self._bytes = [], [], 0
        for number, words in zip(numbers, not_applied(bodies), strict=True):
            self._on_unmet(number, words)


def _head(body: bytes) -> _Head:
    reader = Reader(body)
    kind, flags, columns = reader.read_int(), reader.read_int(), reader.read_int()
    if kind != KIND_ROWS or columns < 1:
        raise FrameError(f"a response of kind {kind} with {columns} columns")
    if flags & HAS_MORE_PAGES:
        reader.read_bytes()
    names, types = [], []
    if not flags & NO_METADATA:
        if flags & GLOBAL_TABLE:
            _skip_strings(reader, 2)
        for _ in range(columns):
            if not flags & GLOBAL_TABLE:
                _skip_strings(reader, 2)
            names.append(reader.read_string())
            types.append(_read_type(reader))
    if reader.read_int() < 1:
        raise FrameError("a response without a row to a conditional statement")
    return _Head(tuple(names), tuple(types), reader.read_bytes() or b"")


def _skip_strings(reader: Reader, count: int) -> None:
    for _ in range(count):
        reader.read_string()


def _read_type(reader: Reader) -> CqlType:
    """Parse an [option]."""
    kind = reader.read_short()
    if kind == CUSTOM:
        return _CUSTOM_TYPES.get(reader.read_string(), _BYTES)
    if kind in (LIST, SET):
        return CqlType("list" if kind == LIST else "set", (_read_type(reader),))
    if kind == MAP:
        return CqlType("map", (_read_type(reader), _read_type(reader)))
    if kind == UDT:
        _skip_strings(reader, 2)
        fields = [(reader.read_string(), _read_type(reader)) for _ in range(reader.read_short())]
        return CqlType("udt", tuple(of for _, of in fields), tuple(name for name, _ in fields))
    if kind == TUPLE:
        return CqlType("tuple", tuple(_read_type(reader) for _ in range(reader.read_short())))
    return CqlType(_SCALARS[kind]) if kind in _SCALARS else _BYTES
