"""Where a scan stands, as text: what is left of its ranges, and how far each has come. Pure.

`lo:hi;lo:hi@STATE`: STATE is the server's paging state of a range that was begun, in base64. It
means the same to every node and after a restart, whatever wrote it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.scan.ranges import TokenRange, unpack_range


class Rest(NamedTuple):
    """What is left of a range: all of it, or what comes after a paging state."""

    range: TokenRange
    state: bytes | None = None


def pack_cursor(rests: Iterable[Rest]) -> str:
    return ";".join(
        f"{lo}:{hi}" + (f"@{base64.b64encode(state).decode()}" if state else "")
        for (lo, hi), state in rests
    )


def unpack_cursor(packed: str) -> list[Rest]:
    """What `pack_cursor` packed. Raises ValueError for anything else."""
    rests = []
    for part in packed.split(";") if packed else []:
        tokens, at, state = part.partition("@")
        try:
            rests.append(
                Rest(unpack_range(tokens), base64.b64decode(state, validate=True) if at else None)
            )
        except binascii.Error as error:
            raise ValueError(f"not a paging state: {state!r}") from error
    return rests


def token_reached(state: bytes) -> int | None:
    """The token of the partition that a paging state points into; None where it cannot be told.

    The state belongs to the server. Since native protocol v4 it begins with that partition's key,
    after its length; whoever uses the token checks that it is within the range.
    """
    length, begin = _unsigned_vint(state)
    if not 0 < length <= len(state) - begin:
        return None
    key = state[begin : begin + length]
    return int(murmur3_tokens(pa.array([key], pa.binary()))[0])


def _unsigned_vint(data: bytes) -> tuple[int, int]:
    """The number that `data` begins with, and the offset after it; (0, 0) if it is cut off.

    As many bytes follow the first as it has ones before its first zero.
    """
    if not data:
        return 0, 0
    more = 8 - (data[0] ^ 0xFF).bit_length()
    if len(data) <= more:
        return 0, 0
    value = data[0] & (0xFF >> more)
    return int.from_bytes(bytes([value]) + data[1 : 1 + more], "big"), 1 + more
