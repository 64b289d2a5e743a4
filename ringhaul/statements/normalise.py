"""Bring results from an unexpected form into the usual form. Pure.

`scan` handles responses without metadata and without anything before the body. A server may add
warnings or a trace; and the response to a conditional statement has metadata, because its columns
depend on whether the condition held (`conditions.py`). Such responses are rare, so they are parsed
one by one.
"""

from __future__ import annotations

import struct

from ringhaul.cql.frames import (
    RESPONSE_VERSION,
    FrameError,
    Opcode,
    Reader,
    Reply,
    frame,
)
from ringhaul.cql.result_codes import KIND_ROWS, NO_METADATA
from ringhaul.errors import ClusterError
from ringhaul.statements.conditions import applied_row
from ringhaul.statements.replies import OTHER, Found, scan

#: The head of a result of one row with one cell.
_ONE_CELL = struct.pack(">iiii", KIND_ROWS, NO_METADATA, 1, 1)


def restated(reply: Reply, columns: int) -> tuple[bytes, Found]:
    """Return a RESULT as a frame for `scan`, and what `scan` finds in it: VOID, ROWS or MORE.

    `columns`: number of columns of the statement's result; 0 if unknown beforehand, which keeps
    only the first cell of the first row.

    Raises `ClusterError` if the table's columns have changed since the start, `FrameError` for a
    malformed response.
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
        raise FrameError("a response that is neither rows nor VOID")
    return data, found


def _check_columns(body: bytes, columns: int) -> None:
    """Raise `ClusterError` if the number of columns has changed since the start."""
    reader = Reader(body)
    if reader.read_int() == KIND_ROWS:
        reader.read_int()
        columns_now = reader.read_int()
        if columns_now != columns:
            raise ClusterError(
                f"the result has {columns_now} columns now, {columns} when the job started: "
                "the table was changed"
            )
