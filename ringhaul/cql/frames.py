"""Frames of the CQL native protocol v4, many at a time. Pure: bytes in, bytes out.

A request is a frame of 9 bytes of header and a body. Thousands of EXECUTE frames are built
column-wise in one buffer, and their replies counted with numpy: the reply to a successful INSERT is
13 bytes that differ only in the stream id. All other replies are parsed one by one.

Source: "CQL BINARY PROTOCOL v4" (native_protocol_v4.spec of Apache Cassandra): frame header in
section 2, messages in section 4, error codes in section 9.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

PROTOCOL_VERSION = 4
RESPONSE_VERSION = 0x80 | PROTOCOL_VERSION
HEADER_BYTES = 9
#: Stream ids of requests are 0..32767; the server uses negative ids for events.
STREAMS_MAX = 32768
#: The protocol's own limit on a body; a longer length means that the stream of replies is garbage.
BODY_BYTES_MAX = 256 * 2**20


class Opcode(IntEnum):
    """The kind of a message (section 2.4)."""

    ERROR = 0x00
    STARTUP = 0x01
    READY = 0x02
    AUTHENTICATE = 0x03
    OPTIONS = 0x05
    SUPPORTED = 0x06
    RESULT = 0x08
    PREPARE = 0x09
    EXECUTE = 0x0A
    BATCH = 0x0D
    AUTH_CHALLENGE = 0x0E
    AUTH_RESPONSE = 0x0F
    AUTH_SUCCESS = 0x10


class ErrorCode(IntEnum):
    """Error codes that a write, a read or a handshake can meet (section 9)."""

    SERVER_ERROR = 0x0000
    PROTOCOL_ERROR = 0x000A
    BAD_CREDENTIALS = 0x0100
    UNAVAILABLE = 0x1000
    OVERLOADED = 0x1001
    IS_BOOTSTRAPPING = 0x1002
    TRUNCATE_ERROR = 0x1003
    WRITE_TIMEOUT = 0x1100
    READ_TIMEOUT = 0x1200
    READ_FAILURE = 0x1300
    FUNCTION_FAILURE = 0x1400
    WRITE_FAILURE = 0x1500
    CDC_WRITE_FAILURE = 0x1600
    CAS_WRITE_UNKNOWN = 0x1700  # v5 only; v4 has WRITE_TIMEOUT instead
    SYNTAX_ERROR = 0x2000
    UNAUTHORIZED = 0x2100
    INVALID = 0x2200
    CONFIG_ERROR = 0x2300
    ALREADY_EXISTS = 0x2400
    UNPREPARED = 0x2500


class FrameError(Exception):
    """The server sent bytes that are not a valid frame: the connection can no longer be used."""


HEADER = struct.Struct(">BBhBi")
#: Header fields of a frame before its length.
HEADER_FIELDS = [("version", "u1"), ("flags", "u1"), ("stream", ">i2"), ("opcode", "u1")]
#: A VOID result: header, length 4, kind 1 (section 4.2.5.1).
_VOID = np.dtype([*HEADER_FIELDS, ("length", ">i4"), ("kind", ">i4")])
_VOID_KIND = 1
#: Comparing with an enum member costs a look-up, and this comparison is made for every reply.
_RESULT = int(Opcode.RESULT)
#: How many replies the search for a run of VOID results checks first, and the factor by which it
#: then grows: among errors most runs are short.
_RUN_FIRST = 256
_RUN_GROWTH = 8
#: Flags of an EXECUTE's parameters (section 4.1.4): values follow; omit the metadata from the
#: reply; the page size in rows; where the last page ended; a write's timestamp.
_FLAG_VALUES = 0x01
_FLAG_SKIP_METADATA = 0x02
_FLAG_PAGE_SIZE = 0x04
_FLAG_PAGING_STATE = 0x08
_FLAG_TIMESTAMP = 0x20
#: Flags of a frame's header (section 2.2).
FLAG_COMPRESSION = 0x01
_FLAG_TRACING = 0x02
_FLAG_PAYLOAD = 0x04
FLAG_WARNING = 0x08


class Frames(NamedTuple):
    """Consecutive requests in one writable buffer."""

    buffer: NDArray[np.uint8]
    #: Frame i is buffer[offsets[i]:offsets[i + 1]].
    offsets: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def bytes_between(self, first: int, last: int) -> int:
        """Return the bytes of the frames first..last-1."""
        return int(self.offsets[last]) - int(self.offsets[first])

    def fit(self, first: int, last: int, bytes_max: int) -> int:
        """Return how many of the frames first..last-1 fit in `bytes_max` together; at least one."""
        end = int(self.offsets[first]) + bytes_max
        count = int(np.searchsorted(self.offsets[first + 1 : last + 1], end, side="right"))
        return max(count, 1)

    def take(self, indexes: NDArray[np.int64]) -> Frames:
        """Return copies of some of the frames, in the order of `indexes`."""
        parts = [self.buffer[self.offsets[i] : self.offsets[i + 1]] for i in indexes.tolist()]
        offsets = np.zeros(len(parts) + 1, np.int32)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return Frames(np.concatenate(parts), offsets)

    def set_streams(self, first: int, last: int, streams: NDArray[np.int64]) -> memoryview:
        """Set the stream ids of the frames first..last-1. Returns the bytes to send."""
        at = self.offsets[first:last]
        self.buffer[at + 2] = streams >> 8
        self.buffer[at + 3] = streams & 0xFF
        return self.buffer.data[int(self.offsets[first]) : int(self.offsets[last])]


def execute_frames(
    rows: pa.BinaryArray,
    query_id: bytes,
    consistency: int,
    values_count: int,
    *,
    page_rows: int = 0,
    skip_metadata: bool = False,
    timestamps: NDArray[np.int64] | None = None,
) -> Frames:
    """Build an EXECUTE frame for each row. The caller must set the stream ids.

    `rows` are bound values as `cells.join_rows` makes them, with `values_count` per row. Section
    4.1.6: the statement's id, consistency, flags, the values, and after them page size and
    timestamp. `page_rows`: most rows of a reply, 0 for the server's default. `skip_metadata`: omit
    the columns' metadata from replies. `timestamps`: write times in microseconds, if the statement
    does not set them; None: the server's clock sets them.
    """
    flags = _FLAG_VALUES
    if skip_metadata:
        flags |= _FLAG_SKIP_METADATA
    tail: list[tuple[str, str, NDArray[np.int64] | int]] = []
    if page_rows:
        flags |= _FLAG_PAGE_SIZE
        tail.append(("page_rows", ">i4", page_rows))
    if timestamps is not None:
        flags |= _FLAG_TIMESTAMP
        tail.append(("timestamp", ">i8", timestamps))
    head = struct.pack(">H", len(query_id)) + query_id
    head += struct.pack(">HBH", consistency, flags, values_count)
    layout = np.dtype([*HEADER_FIELDS, ("length", ">i4"), ("head", "V", len(head))])
    headers = np.empty(len(rows), layout)
    headers["version"] = PROTOCOL_VERSION
    headers["flags"] = 0
    headers["stream"] = 0
    headers["opcode"] = Opcode.EXECUTE
    tails = np.empty(len(rows), np.dtype([(name, kind) for name, kind, _ in tail]))
    for name, _, values in tail:
        tails[name] = values
    headers["length"] = np.diff(offsets_of(rows)) + len(head) + tails.dtype.itemsize
    headers["head"] = np.void(head)
    parts = [_binary(headers), rows]
    if tail:
        parts.append(_binary(tails))
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
    return Frames(np.frombuffer(joined.buffers()[2], np.uint8), offsets_of(joined))


def _binary(records: NDArray[np.void]) -> pa.BinaryArray:
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(records.dtype.itemsize), len(records), [None, pa.py_buffer(records)]
    )
    return fixed.cast(pa.binary())


def next_page_frame(request: bytes, paging_state: bytes) -> Frames:
    """Build the EXECUTE for the page after the page that `request` asks for.

    `request`: a frame of `execute_frames` with a page size, or of this function.
    """
    reader = Reader(request)
    reader.take(HEADER_BYTES)
    reader.take(reader.read_short() + 2)  # the statement's id, consistency
    flags_at = len(request) - len(reader.rest())
    reader = Reader(request[flags_at + 1 :])
    for _ in range(reader.read_short()):
        reader.read_bytes()
    reader.take(4)  # the page size
    end = len(request) - len(reader.rest())
    body = bytearray(request[HEADER_BYTES:end])
    body[flags_at - HEADER_BYTES] |= _FLAG_PAGING_STATE
    body += struct.pack(">i", len(paging_state)) + paging_state
    data = frame(Opcode.EXECUTE, bytes(body))
    return Frames(np.frombuffer(bytearray(data), np.uint8), np.array([0, len(data)], np.int32))


def execute_values(request: bytes) -> list[bytes | None]:
    """Return the values in a frame of `execute_frames`; None: null or unset."""
    reader = Reader(request)
    reader.take(HEADER_BYTES)
    reader.take(reader.read_short() + 3)  # the statement's id, consistency, flags
    return [reader.read_bytes() for _ in range(reader.read_short())]


def frame(opcode: Opcode, body: bytes, stream: int = 0) -> bytes:
    """Build one request frame."""
    return HEADER.pack(PROTOCOL_VERSION, 0, stream, opcode, len(body)) + body


def startup_body(compression: str = "") -> bytes:
    """Return the body of STARTUP (section 4.1.1): a string map of the CQL version, and of the
    compression if there is one."""
    options = {"CQL_VERSION": "3.0.0"}
    if compression:
        options["COMPRESSION"] = compression
    pairs = b"".join(_string(name) + _string(value) for name, value in options.items())
    return struct.pack(">H", len(options)) + pairs


def prepare_body(statement: str) -> bytes:
    """Return the body of PREPARE (section 4.1.5): a long string."""
    text = statement.encode()
    return struct.pack(">i", len(text)) + text


def auth_response_body(token: bytes | None) -> bytes:
    """Return the body of AUTH_RESPONSE (section 4.1.2): bytes, or null for None."""
    return struct.pack(">i", -1) if token is None else struct.pack(">i", len(token)) + token


class Reply(NamedTuple):
    """A reply that is not a plain VOID result."""

    stream: int
    opcode: int
    body: bytes  #: what follows tracing id, warnings and payload
    warnings: Sequence[str] = ()

    @property
    def is_void(self) -> bool:
        """Whether this is a VOID result, which came with warnings."""
        return self.opcode == Opcode.RESULT and self.body == b"\x00\x00\x00\x01"


class Parsed(NamedTuple):
    """The replies found in a buffer."""

    #: Stream ids of the VOID results, in order.
    voids: NDArray[np.int16]
    others: Sequence[Reply]
    #: Bytes of complete frames; the rest of the buffer is the beginning of the next frame.
    consumed_bytes: int


def parse_replies(data: bytes | bytearray | memoryview) -> Parsed:
    """Parse all complete replies in `data`. Raises `FrameError` for bytes that are not a reply."""
    voids: list[NDArray[np.int16]] = []
    others: list[Reply] = []
    at, size = 0, len(data)
    while size - at >= HEADER_BYTES:
        run = _void_run(data, at, (size - at) // _VOID.itemsize)
        if len(run):
            voids.append(run)
            at += len(run) * _VOID.itemsize
            continue
        reply, end = _reply(data, at)
        if reply is None:
            break
        others.append(reply)
        at = end
    found = voids[0] if len(voids) == 1 else np.concatenate([np.empty(0, np.int16), *voids])
    return Parsed(found, others, at)


def _void_run(data: bytes | bytearray | memoryview, at: int, most: int) -> NDArray[np.int16]:
    """Return the stream ids of the run of VOID results that begins at `at`."""
    if not most:
        return np.empty(0, np.int16)
    answers = np.frombuffer(data, _VOID, most, at)
    count, step = 0, _RUN_FIRST
    while count < most:
        part = answers[count : count + step]
        plain = (
            (part["version"] == RESPONSE_VERSION)
            & (part["flags"] == 0)
            & (part["opcode"] == _RESULT)
            & (part["length"] == 4)
            & (part["kind"] == _VOID_KIND)
        )
        if not plain.all():
            count += int(np.argmin(plain))
            break
        count, step = count + len(part), step * _RUN_GROWTH
    return answers["stream"][:count].astype(np.int16)


def _reply(data: bytes | bytearray | memoryview, at: int) -> tuple[Reply | None, int]:
    """Return the reply at `at` and where it ends; None if it is incomplete."""
    version, flags, stream, opcode, length = HEADER.unpack_from(data, at)
    if version != RESPONSE_VERSION or not 0 <= length <= BODY_BYTES_MAX:
        raise FrameError(
            f"the server sent no native protocol v{PROTOCOL_VERSION} frame: "
            f"version byte {version:#04x}, length {length}"
        )
    end = at + HEADER_BYTES + length
    if end > len(data):
        return None, at
    body = bytes(data[at + HEADER_BYTES : end])
    warnings, rest = _extras(flags, body) if flags else ((), body)
    return Reply(stream, opcode, rest, warnings), end


def _extras(flags: int, body: bytes) -> tuple[Sequence[str], bytes]:
    """Return the warnings, and the body without the extras that the header's flags announce
    (section 2.2)."""
    if flags & FLAG_COMPRESSION:
        raise FrameError("the server sent a compressed frame, but compression was not negotiated")
    reader, warnings = Reader(body), []
    if flags & _FLAG_TRACING:
        reader.take(16)
    if flags & FLAG_WARNING:
        warnings = [reader.read_string() for _ in range(reader.read_short())]
    if flags & _FLAG_PAYLOAD:
        for _ in range(reader.read_short()):
            reader.read_string()
            reader.read_bytes()
    return warnings, reader.rest()


class ServerError(NamedTuple):
    """An ERROR reply (section 9)."""

    code: int
    message: str

    @property
    def name(self) -> str:
        """The code's name, or its number."""
        known = self.code in ErrorCode.__members__.values()
        return ErrorCode(self.code).name.lower() if known else f"{self.code:#06x}"


def read_error(body: bytes) -> ServerError:
    """Read the error in the body of an ERROR reply. Raises `FrameError` if it is cut short."""
    reader = Reader(body)
    return ServerError(reader.read_int(), reader.read_string())


def read_prepared_id(body: bytes) -> bytes:
    """Return the statement's id from a RESULT of kind Prepared (section 4.2.5.4)."""
    reader = Reader(body)
    kind = reader.read_int()
    if kind != 4:
        raise FrameError(f"PREPARE was answered by a result of kind {kind}")
    return reader.take(reader.read_short())


class Reader:
    """Reads the data types of section 3 from a body. Raises `FrameError` past its end."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._body):
            raise FrameError(f"{count} bytes at {self._at} of a body of {len(self._body)}")
        taken, self._at = self._body[self._at : end], end
        return taken

    def read_int(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def read_short(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def read_string(self) -> str:
        return self.take(self.read_short()).decode("utf-8", "replace")

    def read_bytes(self) -> bytes | None:
        length = self.read_int()
        return None if length < 0 else self.take(length)

    @property
    def left(self) -> int:
        """The number of bytes not read yet."""
        return len(self._body) - self._at

    def rest(self) -> bytes:
        return self.take(self.left)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


def offsets_of(values: pa.BinaryArray) -> NDArray[np.int32]:
    """Return where each value begins in the data, and where the last value ends."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    return offsets[values.offset : values.offset + len(values) + 1]
