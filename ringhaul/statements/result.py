"""What a committed unit of a lookup or an exec leaves in the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.output.parts import PartInfo

#: Most keys without a row, and rows that were not applied, that a job lists; it only counts others.
#: They are not failures, may be nearly all, and the ledger is memory (1 GB in deploy/valkey.conf)
#: for 7 days. Measured in the log of a unit: 9 bytes for a key of a sequence, 40 for a UUID; 36, 79
#: and 288 for rows of 2, 5 and 20 random numbers. So a job takes 2 to 72 MB. A unit lists only its
#: share, however little other units list: units do not know of each other.
LISTED_MAX = 250_000


class StatementResult(NamedTuple):
    """Counts of one committed attempt."""

    records: int  #: rows of values; equals answered + rejected + doubted
    answered: int
    rejected: int
    doubted: int  #: it is unknown whether they were applied
    missing: int  #: keys of a lookup without a row, which count as answered
    not_applied: int  #: rows of an exec whose condition did not hold, which count as answered
    not_kept: int  #: unlisted part of `missing` and `not_applied`: see `LISTED_MAX`
    rows: int  #: rows of the responses
    parts: int
    bytes_written: int
    retries: int
    elapsed_ms: int
    cpu_ms: int
    attempt: int
    rss_bytes_max: int
    worker: str  #: host:pid

    def pack(self) -> str:
        return ",".join(str(value) for value in self)

    @classmethod
    def unpack(cls, packed: str) -> StatementResult:
        *numbers, worker = packed.split(",", len(cls._fields) - 1)
        counts = [int(number) for number in numbers]
        return cls._make([*counts, worker])


def join_extra(parts: Sequence[PartInfo], log: bytes) -> bytes:
    """Return what a unit leaves in the ledger besides its numbers: parts, and its reject log."""
    return json.dumps([part.to_json() for part in parts]).encode() + b"\n" + log


def split_extra(extra: bytes) -> tuple[list[PartInfo], bytes]:
    """Return the parts and the log that `join_extra` joined."""
    head, _, log = extra.partition(b"\n")
    return [PartInfo.from_json(part) for part in json.loads(head)], log
