"""A load unit and its result, packed small: the ledger keeps one of each per unit.

Budget: under 200 bytes of Redis per unit in all (DESIGN's ledger budget), so both are comma
separated integers rather than JSON. A unit's spec stays under 64 bytes,
which keeps the ledger's hashes in their compact encoding.
"""

from __future__ import annotations

from typing import NamedTuple

#: Length of a unit that is a whole compressed file, read to its end.
TO_THE_END = -1

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

    def pack(self) -> str:
        return ",".join(str(value) for value in self)

    @classmethod
    def unpack(cls, packed: str) -> LoadUnit:
        return cls(*(int(value) for value in packed.split(",")))


class UnitResult(NamedTuple):
    """What one committed attempt did. The report is the sum of these."""

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
        numbers, _, worker = packed.rpartition(",")
        counts = [int(number) for number in numbers.split(",")]
        counts += [0] * (len(cls._fields) - 1 - len(counts))  # of an older ringhaul
        return cls._make([*counts, worker])
