"""A record that could not be loaded: its original bytes, where it stood and why.

Rejects of a unit are committed with the unit's result as one compressed blob of JSON Lines, so
that they are counted exactly once like everything else.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

#: A record's bytes are kept in the ledger up to this length; of a longer one only its place is
#: kept (the ledger is memory). Such a record is nearly always two records run together.
KEPT_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Reject:
    """One rejected record."""

    file: str
    offset: int  #: byte offset of the record in the file (in the decoded stream of a .gz etc.)
    length: int  #: bytes of the record without its line end
    line: int  #: 1-based physical line on which the record starts
    stage: str  #: split | parse | cast | key | write
    column: str | None  #: the column at fault, where one is known
    reason: str
    data: bytes | None  #: the record's original bytes; None when longer than KEPT_BYTES_MAX

    def to_json(self) -> dict[str, Any]:
        """As JSON types; the bytes as base64."""
        row = asdict(self)
        if self.data is not None:
            row["data"] = base64.b64encode(self.data).decode()
        return row

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


def pack_rejects(rejects: Iterable[Reject]) -> bytes:
    """Rejects as one compressed blob."""
    lines = (json.dumps(reject.to_json(), separators=(",", ":")) for reject in rejects)
    return zlib.compress("\n".join(lines).encode())


def unpack_rejects(blob: bytes) -> Iterator[Reject]:
    """The rejects of a blob made by `pack_rejects`, in their order."""
    for line in zlib.decompress(blob).decode().split("\n"):
        row = json.loads(line)
        if row["data"] is not None:
            row["data"] = base64.b64decode(row["data"])
        yield Reject(**row)
