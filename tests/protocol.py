"""Server frames of the native protocol v4, made by hand, for `ringhaul.cql.frames` to read.

Written from the specification ("CQL BINARY PROTOCOL v4"), independent of the code under test.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

ERROR, STARTUP, READY, AUTHENTICATE, OPTIONS, SUPPORTED = 0, 1, 2, 3, 5, 6
RESULT, PREPARE, EXECUTE, BATCH, AUTH_CHALLENGE, AUTH_RESPONSE, AUTH_SUCCESS = (
    8,
    9,
    10,
    13,
    14,
    15,
    16,
)

TRACING, PAYLOAD, WARNING = 0x02, 0x04, 0x08

#: Bytes after the message in an ERROR of each code (section 9).
ERROR_CODES: dict[int, bytes] = {
    0x0000: b"",  # server error
    0x000A: b"",  # protocol error
    0x0100: b"",  # bad credentials
    0x1000: struct.pack(">Hii", 6, 2, 1),  # unavailable: consistency, required, alive
    0x1001: b"",  # overloaded
    0x1002: b"",  # is bootstrapping
    0x1003: b"",  # truncate error
    0x1100: struct.pack(">HiiH6s", 6, 0, 1, 6, b"SIMPLE"),  # write timeout
    0x1200: struct.pack(">HiiB", 6, 0, 1, 0),  # read timeout
    0x1300: struct.pack(">HiiiB", 6, 0, 1, 1, 0),  # read failure
    0x1400: b"\0\1k\0\1f\0\0",  # function failure: keyspace, function, argument types
    0x1500: struct.pack(">HiiiH6s", 6, 0, 1, 1, 6, b"SIMPLE"),  # write failure
    0x1600: struct.pack(">HiiiH6s", 6, 0, 1, 1, 6, b"SIMPLE"),  # CDC write failure
    0x2000: b"",  # syntax error
    0x2100: b"",  # unauthorized
    0x2200: b"",  # invalid
    0x2300: b"",  # config error
    0x2400: b"\0\1k\0\1t",  # already exists: keyspace, table
    0x2500: b"\0\x10" + b"i" * 16,  # unprepared: the statement's id
}


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


def long_bytes(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def reply(opcode: int, body: bytes, stream: int, *, flags: int = 0, version: int = 0x84) -> bytes:
    return struct.pack(">BBhBi", version, flags, stream, opcode, len(body)) + body


def void(
    stream: int,
    *,
    tracing: bytes | None = None,
    warnings: Sequence[str] | None = None,
    payload: Sequence[tuple[str, bytes | None]] | None = None,
) -> bytes:
    """A VOID result, with the optional extras before it."""
    flags, extras = 0, b""
    if tracing is not None:
        flags, extras = flags | TRACING, extras + tracing
    if warnings is not None:
        flags |= WARNING
        extras += struct.pack(">H", len(warnings)) + b"".join(map(string, warnings))
    if payload is not None:
        flags |= PAYLOAD
        extras += struct.pack(">H", len(payload))
        extras += b"".join(string(key) + long_bytes(value) for key, value in payload)
    return reply(RESULT, extras + struct.pack(">i", 1), stream, flags=flags)


def error(stream: int, code: int, message: str) -> bytes:
    body = struct.pack(">i", code) + string(message) + ERROR_CODES.get(code, b"")
    return reply(ERROR, body, stream)


def prepared(stream: int, query_id: bytes) -> bytes:
    """A Prepared result without columns."""
    body = struct.pack(">iH", 4, len(query_id)) + query_id
    body += struct.pack(">iii", 0, 0, 0)  # of the statement: flags, columns, key columns
    body += struct.pack(">ii", 4, 0)  # of its result: no metadata
    return reply(RESULT, body, stream)


def supported(stream: int) -> bytes:
    return reply(SUPPORTED, b"\0\1" + string("CQL_VERSION") + b"\0\1" + string("3.4.7"), stream)
