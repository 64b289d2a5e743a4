"""What becomes of the rows of a unit: files, partial aggregates, or counts by token range.

A sink can say, as bytes, what it has for good (`save`), and another can be made from that: this
is how a unit that was cut short goes on where it got to.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from ringhaul.errors import OutputUnavailable, OutputUnusable
from ringhaul.query.aggregate import Aggregation
from ringhaul.query.select import Select
from ringhaul.read.job import ReadJob
from ringhaul.read.parts import PartInfo, PartSet
from ringhaul.read.ranges import TokenRange
from ringhaul.read.spill import check_memory, spill


@dataclass(frozen=True)
class UnitOf:
    """Which unit of which job it is, and its ranges."""

    job_id: str
    number: int
    ranges: list[TokenRange]


class Sink(Protocol):
    """Takes the rows of one attempt."""

    def write(self, batch: pa.RecordBatch) -> int:
        """Take a batch as it was read; how many of its rows are wanted."""

    def save(self) -> bytes | None:
        """Make durable what was written, and say what there is now; None: too large to keep."""

    def result(self) -> bytes:
        """What to commit, when all rows were taken."""

    def abandon(self) -> None:
        """The attempt is over, or its result does not count: remove what was never saved."""

    @property
    def parts(self) -> list[PartInfo]:
        """The files that are whole, in order."""


class PartsSink:
    """Rows to part files."""

    def __init__(self, select: Select, files: PartSet, earlier: list[PartInfo]) -> None:
        """`earlier`: parts that attempts before this one left for good."""
        self._select, self._files = select, files
        #: Parts that a cursor may name: another attempt may have taken them over.
        self._saved = list(earlier)

    def write(self, batch: pa.RecordBatch) -> int:
        kept = self._select.project(batch)
        self._files.write(kept)
        return int(kept.num_rows)

    def save(self) -> bytes:
        packed = self.result()
        self._saved += self._files.parts
        self._files.parts.clear()
        return packed

    def result(self) -> bytes:
        self._files.roll()
        return json.dumps([part.to_json() for part in self.parts]).encode()

    def abandon(self) -> None:
        # What cannot be removed now is an orphan, which the end of the job removes.
        with suppress(OutputUnusable, OutputUnavailable):
            self._files.withdraw()

    @property
    def parts(self) -> list[PartInfo]:
        return [*self._saved, *self._files.parts]


class AggregateSink:
    """Rows to a partial aggregate."""

    def __init__(self, job: ReadJob, saved: bytes | None) -> None:
        self._job = job
        aggregation = Aggregation(job.select)
        self._partial = aggregation.unpack(saved) if saved else aggregation.partial()

    def write(self, batch: pa.RecordBatch) -> int:
        rows = self._partial.update(batch)
        check_memory(self._partial.nbytes)
        return rows

    def save(self) -> bytes | None:
        packed = self._partial.pack()
        return packed if len(packed) <= self._job.partial_bytes_max else None

    def result(self) -> bytes:
        return spill(self._partial.pack(), self._job.partial_bytes_max, self._job.spill)

    def abandon(self) -> None:
        pass

    @property
    def parts(self) -> list[PartInfo]:
        return []


class TokenCounts:
    """Rows counted by the range of the ring that their token is in."""

    def __init__(self, job: ReadJob, saved: bytes | None) -> None:
        """The job's ring has the tokens that end the ranges, ascending; a token beyond the last is
        in the first range, which goes around the end of the ring."""
        self._where, (token,) = job.select.where, job.select.names
        self._token = token
        self._ends = np.array([token for token, _ in job.ring], np.int64)
        self._counts = np.zeros(len(self._ends), np.int64)
        if saved:
            self._counts += np.frombuffer(saved, np.int64)

    def write(self, batch: pa.RecordBatch) -> int:
        tokens = self._where.filter(batch).column(self._token).to_numpy(zero_copy_only=False)
        ranges = np.searchsorted(self._ends, tokens, side="left") % len(self._ends)
        self._counts += np.bincount(ranges, minlength=len(self._ends))
        return len(tokens)

    def save(self) -> bytes:
        return self._counts.tobytes()

    def result(self) -> bytes:
        return self.save()

    def abandon(self) -> None:
        pass

    @property
    def parts(self) -> list[PartInfo]:
        return []


def open_sink(job: ReadJob, unit: UnitOf, saved: bytes | None) -> Sink:
    """The sink of one attempt; `saved` is what the last one saved, if there was one."""
    if job.ring:
        return TokenCounts(job, saved)
    if job.output is None:
        return AggregateSink(job, saved)
    earlier = [PartInfo.from_json(part) for part in json.loads(saved or b"[]")]
    files = PartSet(
        job.output.url,
        job.output.format,
        job.select.names,
        job.select.types,
        job=unit.job_id,
        unit=unit.number,
        attempt=secrets.token_hex(3),
        rows_max=job.output.rows_max,
        bytes_max=job.output.bytes_max,
        first_number=len(earlier),
        tokens=(unit.ranges[0].lo, unit.ranges[-1].hi),
    )
    return PartsSink(job.select, files, earlier)
