"""A record that could not be loaded: its original bytes, its place and the reason.

Rejects of a unit are committed with the unit's result as one compressed blob of JSON Lines, so that
each counts exactly once, like everything else.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

#: A record's bytes are kept in the ledger, which is memory, up to this length, else only its place.
#: A longer record is nearly always two records run together.
KEPT_BYTES_MAX = 64 * 1024
#: The bytes of one unit's rejects are kept up to this compressed size, and then only their places.
#: Far below the largest value that Redis takes (512 MiB).
KEPT_UNIT_BYTES_MAX = 16 * 2**20

#: Compressed bytes to decompress at a time.
CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Reject:
    """One rejected record."""

    file: str  #: or the table, for a row that was read
    offset: int  #: byte offset of the record in the file (in the decoded stream of a .gz etc.)
    length: int  #: bytes of the record without its line end
    line: int  #: 1-based physical line on which the record starts; 0: a row of a table
    #: split | parse | transform | cast | key | write; for a comparison also missing | differs |
    #: read; for a lookup or an exec also read | doubt | missing | condition
    stage: str
    column: str | None  #: the column at fault, if it is known
    reason: str
    #: The record's original bytes; None if longer than KEPT_BYTES_MAX, or if earlier rejects of its
    #: unit take KEPT_UNIT_BYTES_MAX.
    data: bytes | None

    def to_json(self) -> dict[str, Any]:
        """Return a dict of JSON types, with the bytes as base64."""
        row = asdict(self)
        if self.data is not None:
            row["data"] = base64.b64encode(self.data).decode()
        return row

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


class RejectLog:
    """Rejects of one unit, compressed as they are added: a unit may have a million of them."""

    def __init__(self) -> None:
        self.count = 0
        self._compressor = zlib.compressobj()
        self._chunks: list[bytes] = []
        self._kept_bytes = 0

    def add(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            if self._kept_bytes >= KEPT_UNIT_BYTES_MAX:
                reject = replace(reject, data=None)
            line = json.dumps(reject.to_json(), separators=(",", ":")) + "\n"
            self.count += 1
            if chunk := self._compressor.compress(line.encode()):
                self._chunks.append(chunk)
                self._kept_bytes += len(chunk)

    def so_far(self) -> bytes:
        """Return the log so far; empty if there was no reject. The log stays open."""
        if not self.count:
            return b""
        return b"".join([*self._chunks, self._compressor.copy().flush()])

    def blob(self) -> bytes:
        """Return the whole log, empty if there was no reject, and end it."""
        if not self.count:
            return b""
        return b"".join([*self._chunks, self._compressor.flush()])


def unpack_rejects(blob: bytes) -> Iterator[Reject]:
    """Yield the rejects of a log's blob, in the order in which they were added."""
    decompressor, rest = zlib.decompressobj(), b""
    for start in range(0, len(blob), CHUNK_BYTES):
        text = rest + decompressor.decompress(blob[start : start + CHUNK_BYTES])
        *lines, rest = text.split(b"\n")
        for line in lines:
            row = json.loads(line)
            if row["data"] is not None:
                row["data"] = base64.b64decode(row["data"])
            yield Reject(**row)
