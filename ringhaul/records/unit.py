"""A load unit and its result, packed small: the ledger keeps one of each per unit.

Budget: under 200 bytes of Redis per unit in all, so both are comma separated integers rather than
JSON. A unit's spec stays under 64 bytes, which keeps the ledger's hashes in their compact encoding.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

#: Length of a unit that is a complete compressed file, read to its end.
TO_THE_END = -1

#: Prefix of a node, address:port, in the name of the total of SSTable bytes that the node took.
SENT_TO = "streamed:"

#: Record count of a unit that was not counted yet.
UNCOUNTED = -1


class LoadUnit(NamedTuple):
    """A range of one source that starts and ends on record boundaries."""

    source: int  #: index into `LoadJob.sources`
    offset_bytes: int  #: in the file, or in the decoded stream of a whole-file unit
    length_bytes: int  #: or TO_THE_END
    first_ordinal: int
    first_line: int  #: 1-based physical line
    records_count: int  #: or UNCOUNTED
    #: Ordinal of the first record of its source if the job's bounds count from there, else 0.
    source_ordinal: int = 0

    def pack(self) -> str:
        return ",".join(str(value) for value in (self if self.source_ordinal else self[:-1]))

    @classmethod
    def unpack(cls, packed: str) -> LoadUnit:
        return cls(*(int(value) for value in packed.split(",")))


class UnitResult(NamedTuple):
    """What one committed attempt did. The report is the sum of all results."""

    source: int
    #: Records of the unit that the job covers: loaded, dropped, filtered or rejected.
    records: int
    dropped: int  #: records that a transform left out
    filtered: int  #: records that the job's condition left out
    written: int  #: rows; one for each loaded record, unless there are transforms
    rejected: int
    input_bytes: int
    retries: int
    elapsed_ms: int
    cpu_ms: int  #: CPU of the worker process while it ran the unit
    attempt: int
    rss_bytes_max: int  #: peak resident memory of the worker process so far
    #: Least and most requests that the adaptive window allowed, and how often it shrank; 0 for
    #: strategies without one.
    window_min: int
    window_max: int
    window_shrunk: int
    sstables: int  #: that the unit wrote or streamed, each a group of components; 0 without them
    missed: int  #: replicas that did not take some streamed rows, though enough others did
    worker: str  #: host:pid

    def pack(self) -> str:
        return ",".join(str(value) for value in self)

    @classmethod
    def unpack(cls, packed: str) -> UnitResult:
        """Return the packed result. Raises `ValueError` for any other text."""
        numbers = len(cls._fields) - 1
        parts = packed.split(",", numbers)
        counts = [int(part) for part in takewhile(_is_count, parts[:numbers])]
        added = numbers - len(counts)
        if added > cls._fields[::-1].index("window_shrunk") - 1:
            raise ValueError(f"not the result of a unit: {packed!r:.100}")
        # An older ringhaul did not write the last counts.
        return cls._make([*counts, *[0] * added, ",".join(parts[len(counts) :])])


def _is_count(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
