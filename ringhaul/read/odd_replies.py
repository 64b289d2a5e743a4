"""Results that do not come as they were asked for, in the form of those that do. Pure.

`scan` knows answers without metadata and without anything in front. A server may have warnings or a
trace to tell; and what a statement with a condition answers has its metadata, because its columns
depend on whether the condition held. Few answers are such, so they are taken apart one by one.
"""

from __future__ import annotations

import struct

from ringhaul.cql.frames import RESPONSE_VERSION, FrameError, Opcode, Reader, Reply, frame
from ringhaul.errors import ClusterError
from ringhaul.read.replies import FLAG_NO_METADATA, KIND_ROWS, OTHER, Found, scan

_GLOBAL_TABLE, _HAS_MORE_PAGES = 0x01, 0x02
#: What stands in front of the one cell of one row.
_ONE_CELL = struct.pack(">iiii", KIND_ROWS, FLAG_NO_METADATA, 1, 1)


def restated(reply: Reply, columns: int) -> tuple[bytes, Found]:
    """A RESULT as a frame for `scan`, and what that finds in it: VOID, ROWS or MORE.

    `columns`: of the statement's result; 0 if they are not known beforehand, which leaves of rows
    the first cell of the first one.

    Raises `ClusterError` if the table has other columns now than when this began, `FrameError` for
    what is no answer to a request.
    """
    if reply.opcode != Opcode.RESULT:
        raise FrameError(f"a request was answered by message {reply.opcode:#04x}")
    body = reply.body
    if not columns and not reply.is_void:
        body = _ONE_CELL + applied_row(body)
    data = bytes([RESPONSE_VERSION]) + frame(Opcode.RESULT, body, reply.stream)[1:]
    found = scan(data, columns or 1)
    if found.kinds[0] == OTHER:
        _check_columns(body, columns)
        raise FrameError("an answer that is neither rows nor VOID")
    return data, found


def applied_row(body: bytes) -> bytes:
    """The first cell of the first row of a RESULT that has its metadata: whether an `IF` held.

    Section 4.2.5.2; it comes as one row with one cell. Raises `FrameError`.
    """
    reader = Reader(body)
    kind, flags, columns = reader.read_int(), reader.read_int(), reader.read_int()
    if kind != KIND_ROWS or columns < 1:
        raise FrameError(f"an answer of kind {kind} with {columns} columns")
    if flags & _HAS_MORE_PAGES:
        reader.read_bytes()
    if not flags & FLAG_NO_METADATA:
        if flags & _GLOBAL_TABLE:
            _skip_strings(reader, 2)
        for _ in range(columns):
            if not flags & _GLOBAL_TABLE:
                _skip_strings(reader, 2)
            reader.read_string()
            _skip_type(reader)
    if reader.read_int() < 1:
        raise FrameError("an answer without a row to a statement with a condition")
    cell = reader.read_bytes() or b""
    return struct.pack(">i", len(cell)) + cell


def _check_columns(body: bytes, columns: int) -> None:
    """Raise `ClusterError` if there are not so many as when this began."""
    reader = Reader(body)
    if reader.read_int() == KIND_ROWS:
        reader.read_int()
        columns_now = reader.read_int()
        if columns_now != columns:
            raise ClusterError(
                f"the result has {columns_now} columns now, {columns} when the job began: "
                "the table was changed"
            )


def _skip_strings(reader: Reader, count: int) -> None:
    for _ in range(count):
        reader.read_string()


def _skip_type(reader: Reader) -> None:
    """An [option] of section 4.2.5.2."""
    match reader.read_short():
        case 0x0000:  # custom
            reader.read_string()
        case 0x0020 | 0x0022:  # list, set
            _skip_type(reader)
        case 0x0021:  # map
            _skip_type(reader)
            _skip_type(reader)
        case 0x0030:  # user-defined type
            _skip_strings(reader, 2)
            for _ in range(reader.read_short()):
                reader.read_string()
                _skip_type(reader)
        case 0x0031:  # tuple
            for _ in range(reader.read_short()):
                _skip_type(reader)
