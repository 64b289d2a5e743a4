"""Results that do not come as they were asked for, in the form of those that do. Pure.

`scan` knows answers without metadata and without anything in front. A server may have warnings or a
trace to tell; and what a statement with a condition answers has its metadata, because its columns
depend on whether the condition held (`conditions.py`). Few answers are such, so they are taken
apart one by one.
"""

from __future__ import annotations

import struct

from ringhaul.cql.frames import RESPONSE_VERSION, FrameError, Opcode, Reader, Reply, frame
from ringhaul.errors import ClusterError
from ringhaul.statements.conditions import applied_row
from ringhaul.statements.replies import FLAG_NO_METADATA, KIND_ROWS, OTHER, Found, scan

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
