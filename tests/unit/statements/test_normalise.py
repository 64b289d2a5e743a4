"""Results with metadata or warnings in front are normalised to those without."""

from __future__ import annotations

import struct

import pytest

from ringhaul.cql.frames import FrameError, Opcode, Reply
from ringhaul.errors import ClusterError
from ringhaul.statements.normalise import restated
from ringhaul.statements.replies import MORE, ROWS, VOID, paging_state
from tests import protocol


def result(body: bytes) -> Reply:
    return Reply(7, Opcode.RESULT, body)


def rows_body(flags: int, columns: int, *cells: bytes) -> bytes:
    state = protocol.long_bytes(b"state") if flags & 2 else b""
    rows = b"".join(map(protocol.long_bytes, cells))
    return (
        struct.pack(">iii", 2, flags, columns)
        + state
        + struct.pack(">i", len(cells) // columns)
        + rows
    )


@pytest.mark.parametrize(
    ("body", "kind", "rows"),
    [
        (struct.pack(">i", 1), VOID, 0),
        (rows_body(4, 2, b"a", b"b", b"c", b"d"), ROWS, 2),
        (rows_body(6, 2, b"a", b"b"), MORE, 1),
    ],
)
def test_a_result_is_found_whatever_precedes_it(body: bytes, kind: int, rows: int) -> None:
    data, found = restated(result(body), 2)
    assert data.endswith(body)
    assert found.consumed_bytes == len(data)
    assert (found.streams.tolist(), found.kinds.tolist()) == ([7], [kind])
    if kind == VOID:
        return
    assert found.counts.tolist() == [rows]
    assert int(found.ends[0]) == len(data)
    if kind == MORE:
        assert paging_state(data, 0) == b"state"


def test_only_the_first_cell_of_a_conditional_answer_remains() -> None:
    name = protocol.string("ks") + protocol.string("t") + protocol.string("[applied]") + b"\0\4"
    body = struct.pack(">iii", 2, 1, 1) + name + struct.pack(">i", 1) + protocol.long_bytes(b"\1")
    data, found = restated(result(body), 0)
    assert found.kinds.tolist() == [ROWS]
    assert data[int(found.starts[0]) : int(found.ends[0])] == protocol.long_bytes(b"\1")


def test_frames_that_are_not_answers_are_errors() -> None:
    with pytest.raises(ClusterError, match="has 3 columns now, 2 when the job started"):
        restated(result(rows_body(4, 3, b"a", b"b", b"c")), 2)
    with pytest.raises(FrameError, match="message 0x06"):
        restated(Reply(7, Opcode.SUPPORTED, b""), 2)
    with pytest.raises(FrameError, match="neither rows nor VOID"):
        restated(result(struct.pack(">i", 3)), 2)
