"""Read what precedes the rows: the envelope of a response, and the head of a Rows result.

Source: "CQL BINARY PROTOCOL" v4 and v5 of Apache Cassandra, section 2.2 (flags) and 4.2.5.2
(Rows). In the parts read here, the versions differ only in v5's metadata id.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ringhaul.cql.decode.hostile_page import HostilePage
from ringhaul.cql.result_codes import (
    CUSTOM,
    GLOBAL_TABLE,
    HAS_MORE_PAGES,
    KIND_ROWS,
    LIST,
    MAP,
    METADATA_CHANGED,
    NO_METADATA,
    SET,
    TUPLE,
    UDT,
)

Body = bytes | bytearray | memoryview

_TRACING, _PAYLOAD, _WARNING = 0x02, 0x04, 0x08
#: Deepest nesting of types in metadata: far more than the server allows.
_TYPES_DEPTH_MAX = 100

_INT, _SHORT, _START = struct.Struct(">i"), struct.Struct(">H"), struct.Struct(">iii")


class Head(NamedTuple):
    """The fields of a Rows result before its cells."""

    columns_count: int
    rows_count: int
    #: None on the last page.
    paging_state: bytes | None
    #: Offset of the first cell.
    at: int


def result_body(flags: int, body: Body) -> tuple[Body, list[str]]:
    """Return the body of a result without the extras that its frame's `flags` announce, and the
    warnings.

    The extras are a trace id, warnings (such as about many tombstones) and a payload; all but the
    warnings are dropped. Raises `HostilePage`.
    """
    if not flags & (_TRACING | _PAYLOAD | _WARNING):
        return body, []
    try:
        return _without_envelope(flags, body)
    except (struct.error, UnicodeDecodeError):
        raise HostilePage("a response ends before its message") from None


def _without_envelope(flags: int, body: Body) -> tuple[Body, list[str]]:
    at, warnings = 0, []
    if flags & _TRACING:
        at += 16
    if flags & _WARNING:
        (count,), at = _SHORT.unpack_from(body, at), at + 2
        for _ in range(count):
            end = _past_string(body, at)
            warnings.append(bytes(body[at + 2 : end]).decode())
            at = end
    if flags & _PAYLOAD:
        (count,), at = _SHORT.unpack_from(body, at), at + 2
        for _ in range(count):
            at = _past_bytes(body, _past_string(body, at))
    if at > len(body):
        raise HostilePage("a response ends before its message")
    return memoryview(body)[at:], warnings


def paging_state(body: Body) -> bytes | None:
    """Return where the next page begins, None on the last page. Costs a microsecond.

    `body`: body of a Rows result. Raises `HostilePage`.
    """
    try:
        return _start(body)[2]
    except struct.error:
        raise HostilePage("a page ends in its head") from None


def read_head(body: Body) -> Head:
    """Read the head of a Rows result. Raises `HostilePage`."""
    try:
        flags, columns_count, state, at = _start(body)
        if not flags & NO_METADATA:
            at = _past_specs(body, at, columns_count, bool(flags & GLOBAL_TABLE))
        (rows_count,) = _INT.unpack_from(body, at)
    except struct.error:
        raise HostilePage("a page ends in its head") from None
    return Head(columns_count, rows_count, state, at + 4)


def _start(body: Body) -> tuple[int, int, bytes | None, int]:
    """Return flags, columns count, paging state, and the offset of what follows."""
    kind, flags, columns_count = _START.unpack_from(body)
    if kind != KIND_ROWS:
        raise HostilePage(f"expected a Rows result, got kind {kind}")
    at, state = 12, None
    if flags & HAS_MORE_PAGES:
        end = _past_bytes(body, at)
        state = bytes(body[at + 4 : end])
        if not state:
            raise HostilePage("a page announces more pages without a paging state")
        at = end
    if flags & METADATA_CHANGED:
        at = _past_string(body, at)
    return flags, columns_count, state, at


def _past_specs(body: Body, at: int, columns_count: int, global_table: bool) -> int:
    """Return where the columns' names and types end."""
    if columns_count * 4 > len(body):
        raise HostilePage(f"a page has no room for {columns_count} columns")
    if global_table:
        at = _past_string(body, _past_string(body, at))
    for _ in range(columns_count):
        if not global_table:
            at = _past_string(body, _past_string(body, at))
        at = _past_type(body, _past_string(body, at))
    return at


def _past_type(body: Body, at: int, depth: int = 0) -> int:
    if depth > _TYPES_DEPTH_MAX:
        raise HostilePage("a column's type is nested too deeply")
    (kind,), at = _SHORT.unpack_from(body, at), at + 2
    if kind == CUSTOM:
        return _past_string(body, at)
    fields_count = {LIST: 1, SET: 1, MAP: 2}.get(kind, 0)
    if kind == UDT:
        at = _past_string(body, _past_string(body, at))
    if kind in (UDT, TUPLE):
        (fields_count,), at = _SHORT.unpack_from(body, at), at + 2
    for _ in range(fields_count):
        if kind == UDT:
            at = _past_string(body, at)
        at = _past_type(body, at, depth + 1)
    return at


def _past_string(body: Body, at: int) -> int:
    end = at + 2 + int(_SHORT.unpack_from(body, at)[0])
    if end > len(body):
        raise HostilePage("a page ends in its head")
    return end


def _past_bytes(body: Body, at: int) -> int:
    """Return where a [bytes] value ends. A length of -1 (null) counts as 0."""
    end = at + 4 + max(int(_INT.unpack_from(body, at)[0]), 0)
    if end > len(body):
        raise HostilePage("a page ends in its head")
    return end
