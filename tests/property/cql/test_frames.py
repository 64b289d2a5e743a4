"""Frames equal those of the driver byte for byte; answers are read like by the driver."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cassandra import ConsistencyLevel
from cassandra.protocol import (
    AuthenticateMessage,
    AuthResponseMessage,
    BatchMessage,
    ErrorMessage,
    ExecuteMessage,
    OptionsMessage,
    PrepareMessage,
    ProtocolHandler,
    ReadyMessage,
    ResultMessage,
    StartupMessage,
    SupportedMessage,
)
from cassandra.query import UNSET_VALUE, BatchType
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql import frames
from ringhaul.cql.batches import batch_frames, entries_of
from ringhaul.cql.cells import Cells, join_rows
from ringhaul.cql.frames import (
    FrameError,
    Opcode,
    auth_response_body,
    execute_frames,
    frame,
    next_page_frame,
    parse_replies,
    prepare_body,
    read_error,
    read_prepared_id,
    startup_body,
)
from tests import protocol

PROTOCOL = 4
VALUES = st.one_of(st.none(), st.just(UNSET_VALUE), st.binary(max_size=40))
STREAMS = st.integers(0, 32767)
CONSISTENCIES = st.sampled_from(sorted(ConsistencyLevel.value_to_name))
TEXTS = st.text(max_size=30)


def rows_of(columns: int) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(VALUES, min_size=columns, max_size=columns), min_size=1, max_size=12)


def cells(values: list[Any]) -> Cells:
    """A column whose rows are bytes, None or unset."""
    lengths = [-1 if v is None else -2 if v is UNSET_VALUE else len(v) for v in values]
    data = [v if isinstance(v, bytes) else b"" for v in values]
    return Cells(None, np.array(lengths, ">i4"), pa.array(data, pa.binary()))


def driver_frame(message: Any, stream: int = 0) -> bytes:
    return bytes(ProtocolHandler.encode_message(message, stream, PROTOCOL, None, False))


@given(
    st.integers(1, 4).flatmap(rows_of),
    st.binary(min_size=1, max_size=32),
    CONSISTENCIES,
    st.data(),
)
def test_every_frame_is_what_the_driver_sends(
    rows: list[list[Any]], query_id: bytes, consistency: int, data: st.DataObject
) -> None:
    # Given rows of any values, and a slice of them encoded
    streams = data.draw(st.lists(STREAMS, min_size=len(rows), max_size=len(rows)))
    first = data.draw(st.integers(0, len(rows) - 1))
    joined = join_rows([cells(list(column)) for column in zip(*rows, strict=True)])
    made = execute_frames(joined.slice(first), query_id, consistency, len(rows[0]))
    rows, streams = rows[first:], streams[first:]
    # When they get their stream ids in two steps
    middle = data.draw(st.integers(0, len(rows)))
    sent = bytes(made.set_streams(0, middle, np.array(streams[:middle], np.int64)))
    sent += bytes(made.set_streams(middle, len(rows), np.array(streams[middle:], np.int64)))
    # Then each is the driver's frame
    assert len(made) == len(rows)
    for i, (row, stream) in enumerate(zip(rows, streams, strict=True)):
        ours = sent[made.offsets[i] - made.offsets[0] : made.offsets[i + 1] - made.offsets[0]]
        assert ours == driver_frame(ExecuteMessage(query_id, row, consistency), stream)


@given(st.integers(1, 3).flatmap(rows_of), st.data())
def test_frames_that_are_taken_for_a_retry_are_the_same(
    rows: list[list[Any]], data: st.DataObject
) -> None:
    joined = join_rows([cells(list(column)) for column in zip(*rows, strict=True)])
    made = execute_frames(joined, b"id", 1, len(rows[0]))
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
    taken = made.take(np.array(picked))
    sent = bytes(taken.set_streams(0, len(taken), np.array(picked)))
    assert sent == b"".join(driver_frame(ExecuteMessage(b"id", rows[i], 1), i) for i in picked)


@given(
    st.integers(1, 4).flatmap(rows_of), st.binary(min_size=1, max_size=32), CONSISTENCIES, st.data()
)
def test_every_batch_is_what_the_driver_sends_and_can_be_taken_apart(
    rows: list[list[Any]], query_id: bytes, consistency: int, data: st.DataObject
) -> None:
    # Given rows of any values, and a slice of them cut into batches anywhere
    first = data.draw(st.integers(0, len(rows) - 1))
    joined = join_rows([cells(list(column)) for column in zip(*rows, strict=True)]).slice(first)
    rows = rows[first:]
    inner = data.draw(st.lists(st.booleans(), min_size=len(rows) - 1, max_size=len(rows) - 1))
    cuts = [0, *(at for at, cut in enumerate(inner, 1) if cut), len(rows)]
    made = batch_frames(joined, np.array(cuts), query_id, consistency, len(rows[0]))
    # When they get their stream ids
    streams = data.draw(st.lists(STREAMS, min_size=len(made), max_size=len(made)))
    sent = bytes(made.set_streams(0, len(made), np.array(streams, np.int64)))
    # Then they are the driver's
    batches = [rows[begin:end] for begin, end in pairwise(cuts)]
    assert sent == b"".join(
        driver_frame(
            BatchMessage(BatchType.UNLOGGED, [(True, query_id, row) for row in batch], consistency),
            stream,
        )
        for batch, stream in zip(batches, streams, strict=True)
    )
    # And each gives its rows back
    for i, (begin, end) in enumerate(pairwise(cuts)):
        frame_of_batch = made.buffer[made.offsets[i] : made.offsets[i + 1]].tobytes()
        assert entries_of(frame_of_batch).to_pylist() == joined[begin:end].to_pylist()


@given(st.text(max_size=200), STREAMS, st.one_of(st.none(), st.binary(max_size=40)))
def test_other_requests_are_what_the_driver_sends(
    statement: str, stream: int, token: bytes | None
) -> None:
    assert frame(Opcode.STARTUP, startup_body(), stream) == driver_frame(
        StartupMessage(cqlversion="3.0.0", options={}), stream
    )
    assert frame(Opcode.OPTIONS, b"", stream) == driver_frame(OptionsMessage(), stream)
    assert frame(Opcode.PREPARE, prepare_body(statement), stream) == driver_frame(
        PrepareMessage(statement), stream
    )
    if token is not None:  # the driver cannot send an absent token
        assert frame(Opcode.AUTH_RESPONSE, auth_response_body(token), stream) == driver_frame(
            AuthResponseMessage(token), stream
        )
    else:
        assert auth_response_body(None) == b"\xff\xff\xff\xff"


voids = st.builds(
    protocol.void,
    STREAMS,
    tracing=st.none() | st.binary(min_size=16, max_size=16),
    warnings=st.none() | st.lists(TEXTS, max_size=3),
    payload=st.none() | st.lists(st.tuples(TEXTS, st.none() | st.binary(max_size=9)), max_size=2),
)
plain_voids = st.builds(protocol.void, STREAMS)
#: For an unknown code the driver uses its base class.
errors = st.builds(protocol.error, STREAMS, st.sampled_from([*protocol.ERROR_CODES, 0x7777]), TEXTS)
handshakes = st.builds(
    protocol.reply,
    st.just(protocol.AUTHENTICATE),
    TEXTS.map(protocol.string),
    STREAMS,
) | st.builds(protocol.reply, st.just(protocol.READY), st.just(b""), STREAMS)
answers = st.lists(
    st.one_of(
        plain_voids,
        plain_voids,
        voids,
        errors,
        handshakes,
        st.builds(protocol.supported, STREAMS),
        st.builds(protocol.prepared, STREAMS, st.binary(max_size=20)),
    ),
    max_size=12,
)


def driver_message(data: bytes) -> Any:
    return ProtocolHandler.decode_message(
        PROTOCOL, {}, int.from_bytes(data[2:4], "big"), data[1], data[4], data[9:], None, None
    )


def outcome(reply: frames.Reply) -> tuple[Any, ...]:
    """The content of an answer, in the form of `driver_outcome`."""
    if reply.is_void:
        return (reply.stream, "void")
    match reply.opcode:
        case Opcode.ERROR:
            return (reply.stream, "error", *read_error(reply.body))
        case Opcode.RESULT:
            return (reply.stream, "prepared", read_prepared_id(reply.body))
        case Opcode.AUTHENTICATE:
            return (reply.stream, "authenticate", frames.Reader(reply.body).read_string())
        case Opcode.READY:
            return (reply.stream, "ready")
        case Opcode.SUPPORTED:
            return (reply.stream, "supported")
    raise AssertionError(f"message {reply.opcode}")


def driver_outcome(data: bytes) -> tuple[Any, ...]:
    message = driver_message(data)
    stream = message.stream_id
    match message:
        case ErrorMessage():
            return (stream, "error", message.code, message.message)
        case ResultMessage():
            return (stream, "void") if message.kind == 1 else (stream, "prepared", message.query_id)
        case AuthenticateMessage():
            return (stream, "authenticate", message.authenticator)
        case ReadyMessage():
            return (stream, "ready")
        case SupportedMessage():
            return (stream, "supported")
    raise AssertionError(f"message {message}")


def outcomes(parsed: frames.Parsed) -> list[tuple[Any, ...]]:
    """The contents of the answers, without their order."""
    plain = [(stream, "void") for stream in parsed.voids.tolist()]
    return sorted(plain + [outcome(reply) for reply in parsed.others], key=repr)


@given(answers)
def test_answers_are_read_like_by_the_driver(replies: list[bytes]) -> None:
    expected = sorted((driver_outcome(data) for data in replies), key=repr)
    for data in (b"".join(replies), bytearray(b"".join(replies))):
        parsed = parse_replies(data)
        assert parsed.consumed_bytes == len(data)
        assert outcomes(parsed) == expected
    # And answers of one kind keep their order
    plain = [
        int.from_bytes(data[2:4], "big")
        for data in replies
        if data == protocol.void(int.from_bytes(data[2:4], "big"))
    ]
    assert parsed.voids.tolist() == plain


@given(answers)
def test_a_cut_at_any_byte_changes_nothing(replies: list[bytes]) -> None:
    data = b"".join(replies)
    expected = outcomes(parse_replies(data))
    ends = {0}
    for reply in replies:
        ends.add(max(ends) + len(reply))
    for cut in range(len(data) + 1):
        # When the buffer comes in two parts
        before = parse_replies(data[:cut])
        # Then exactly the complete answers are taken
        assert before.consumed_bytes == max(end for end in ends if end <= cut)
        after = parse_replies(data[before.consumed_bytes :])
        assert before.consumed_bytes + after.consumed_bytes == len(data)
        assert sorted(outcomes(before) + outcomes(after), key=repr) == expected


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_waited_for(data: bytes) -> None:
    # Given random bytes, alone and after valid answers
    for prefix in (b"", protocol.void(3), protocol.error(4, 0x1001, "busy")):
        try:
            parsed = parse_replies(prefix + data)
        except FrameError:
            continue
        # Then no more bytes are consumed than there are
        assert 0 <= parsed.consumed_bytes <= len(prefix) + len(data)


@given(answers, st.data())
def test_answers_with_a_wrong_byte_never_break_the_parser(
    replies: list[bytes], data: st.DataObject
) -> None:
    whole = bytearray(b"".join(replies) or protocol.void(1))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    try:
        parsed = parse_replies(whole)
    except FrameError:
        return
    assert 0 <= parsed.consumed_bytes <= len(whole)
    for reply in parsed.others:
        if reply.opcode == Opcode.ERROR:
            try:
                read_error(reply.body)
            except FrameError:
                continue


@pytest.mark.parametrize("before", [0, 1, 255, 256, 257, 2303, 2304, 2305, 5000])
def test_long_runs_are_counted_whole(before: int) -> None:
    # Given runs of VOID on both sides of an error
    data = b"".join(protocol.void(n % 32768) for n in range(before))
    data += protocol.error(9, 0x2200, "bad") + protocol.void(1) * 40
    parsed = parse_replies(data)
    assert parsed.voids.tolist() == [*range(before), *[1] * 40]
    assert [outcome(reply) for reply in parsed.others] == [(9, "error", 0x2200, "bad")]


@given(
    st.integers(1, 3).flatmap(rows_of),
    CONSISTENCIES,
    st.integers(1, 2**31 - 1),
    st.booleans(),
    st.none() | st.integers(0, 2**50),
    st.lists(st.binary(min_size=1, max_size=20), max_size=3),
)
def test_frames_of_reads_and_their_further_pages_are_the_drivers(
    rows: list[list[Any]],
    consistency: int,
    page_rows: int,
    skips: bool,
    timestamp: int | None,
    states: list[bytes],
) -> None:
    joined = join_rows([cells(list(column)) for column in zip(*rows, strict=True)])
    first = None if timestamp is None else timestamp + np.arange(len(rows))
    made = execute_frames(
        joined,
        b"q" * 16,
        consistency,
        len(rows[0]),
        page_rows=page_rows,
        skip_metadata=skips,
        timestamps=first,
    )
    for i, row in enumerate(rows):
        ours = made.buffer[made.offsets[i] : made.offsets[i + 1]].tobytes()
        if skips:
            # The driver never sets this flag (0x02, section 4.1.4) for protocol v4
            flags_at = 9 + 2 + 16 + 2
            assert ours[flags_at] & 0x02
            ours = ours[:flags_at] + bytes([ours[flags_at] ^ 0x02]) + ours[flags_at + 1 :]
        options: dict[str, Any] = {"fetch_size": page_rows}
        if timestamp is not None:
            options["timestamp"] = timestamp + i
        message = ExecuteMessage(b"q" * 16, row, consistency, **options)
        assert ours == driver_frame(message)
        if timestamp is not None:
            continue
        # Each page is requested by the frame that requested the previous one
        for state in states:
            page = next_page_frame(ours, state)
            ours = page.buffer[page.offsets[0] : page.offsets[1]].tobytes()
            message.paging_state = state
            assert ours == driver_frame(message)
