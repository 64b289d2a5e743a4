"""Sinks for the rows of a unit: files, partial aggregates, or counts by token range.

A sink can return its durable state as bytes (`save`), and a new sink can start from that state:
this is how a unit that was interrupted continues.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ringhaul.cql.text_format import USUAL
from ringhaul.errors import OutputUnavailable, OutputUnusable, TooManyRejects
from ringhaul.formats.parquet_json import record_json
from ringhaul.output.partitions import PartitionedParts
from ringhaul.output.parts import PartInfo, PartSet
from ringhaul.output.unloadable_rows import TOO_LONG, Unloadable, join_unloadable
from ringhaul.query.aggregate import Aggregation
from ringhaul.query.select import Select
from ringhaul.records.rejects import KEPT_BYTES_MAX, Reject, RejectLog, unpack_rejects
from ringhaul.scan.empty_values import unmarked
from ringhaul.scan.job import ReadJob
from ringhaul.scan.odd_rows import unloadable_rows
from ringhaul.scan.ranges import TokenRange
from ringhaul.scan.reshape import Reshaper
from ringhaul.scan.spill import check_memory, forget_spilled, spill, spilled_name

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform


@dataclass(frozen=True)
class UnitOf:
    """A unit: its job, its number and its ranges."""

    job_id: str
    number: int
    ranges: list[TokenRange]


class Given(NamedTuple):
    """Rows that went into transforms, and rows that did not come out."""

    rows: int = 0  #: rows that passed WHERE
    dropped: int = 0
    rejected: int = 0


class Sink(Protocol):
    """Takes the rows of one attempt."""

    def write(self, batch: pa.RecordBatch, renew: Callable[[], None]) -> int:
        """Take a batch as read; return how many of its rows pass WHERE.

        `renew` is called while that takes long. If it raises, nothing of the batch was taken.
        """

    def save(self) -> bytes | None:
        """Make written rows durable and return the state; None: too large to keep."""

    def result(self) -> bytes:
        """Return what to commit, after all rows were taken."""

    def abandon(self) -> None:
        """Remove what was never saved: the attempt has failed, or its result does not count."""

    @property
    def parts(self) -> list[PartInfo]:
        """The finished files, in order."""

    @property
    def given(self) -> Given | None:
        """Rows that went into transforms; None without transforms."""

    @property
    def unloadable(self) -> list[Unloadable]:
        """Rows of this attempt that cannot be loaded again."""


class PartsSink:
    """Writes rows to part files."""

    given: Given | None = None

    def __init__(
        self,
        select: Select,
        files: PartSet | PartitionedParts,
        earlier: list[PartInfo],
        *,
        nuls: bool = False,
    ) -> None:
        """`earlier`: parts that previous attempts saved. `nuls`: see `unloadable_rows`."""
        self._select, self._files, self._nuls = select, files, nuls
        #: Whether values keep their types in the files.
        self._typed = files.kind == "parquet"
        #: Parts that a cursor may name: another attempt may continue from them.
        self._saved = list(earlier)
        self.unloadable: list[Unloadable] = []

    def write(self, batch: pa.RecordBatch, renew: Callable[[], None]) -> int:
        kept = self._select.project_marked(batch)
        if self._typed and batch.num_columns > len(self._select.fetches):
            kept = unmarked(self._select, batch, kept)
        too_long = self._files.write(kept)
        found = unloadable_rows(self._select, batch, kept, too_long, nuls=self._nuls)
        if found:
            self.unloadable = join_unloadable([*self.unloadable, *found])
        return int(kept.num_rows)

    def save(self) -> bytes:
        packed = self._packed()
        self._saved += self._files.parts
        self._files.parts.clear()
        return packed

    def result(self) -> bytes:
        return self._packed()

    def _packed(self) -> bytes:
        self._files.roll()
        return json.dumps([part.to_json() for part in self.parts]).encode()

    def abandon(self) -> None:
        # Files that cannot be removed now are orphans, which are removed at the end of the job.
        with suppress(OutputUnusable, OutputUnavailable):
            self._files.withdraw()

    @property
    def parts(self) -> list[PartInfo]:
        return [*self._saved, *self._files.parts]


class TransformedParts(PartsSink):
    """Writes rows through transforms to part files; rows on which they fail become rejects."""

    def __init__(
        self,
        job: ReadJob,
        files: PartSet | PartitionedParts,
        earlier: list[PartInfo],
        transforms: tuple[Transform, ...],
        rejects_max: int,
        saved: bytes | None,
    ) -> None:
        super().__init__(job.select, files, earlier)
        self._table = job.table.name
        self._reshaper = Reshaper(transforms, job.results)
        self._rejects, self._rejects_max = RejectLog(), rejects_max
        self.given: Given = Given()
        if saved is not None:
            _, given, rejects = saved.split(b"\n", 2)
            self.given = Given(*json.loads(given))
            self._rejects.add(unpack_rejects(rejects))

    def write(self, batch: pa.RecordBatch, renew: Callable[[], None]) -> int:
        """See `Sink`. Raises `TooManyRejects` if earlier batches had too many."""
        if 0 <= self._rejects_max < self._rejects.count:
            # Only if there is more to read: at its end a unit is committed, which stops the job as
            # well.
            raise TooManyRejects(0, self._rejects.count, 0, b"[]\n" + self._rejects.so_far())
        kept = self._select.project(batch)
        done = self._reshaper.run(kept, renew)
        rows_count = 0
        for rows in done.rows:
            too_long = self._files.write(rows)
            if too_long:
                found = Unloadable("", TOO_LONG, len(too_long), "a key that a transform gave")
                self.unloadable = join_unloadable([*self.unloadable, found])
            rows_count += rows.num_rows
        self._rejects.add(self._reject(kept, *error) for error in sorted(done.errors.items()))
        self.given = Given(
            self.given.rows + kept.num_rows,
            self.given.dropped + done.dropped,
            self.given.rejected + len(done.errors),
        )
        return rows_count

    def save(self) -> bytes:
        parts = super().save()
        return b"\n".join([parts, json.dumps(self.given).encode(), self._rejects.so_far()])

    def result(self) -> bytes:
        """Return the parts, followed by a newline and the rejects."""
        return super().result() + b"\n" + self._rejects.so_far()

    def _reject(self, batch: pa.RecordBatch, row: int, reason: str) -> Reject:
        data = record_json(batch, row, self._select.types, USUAL)
        return Reject(
            file=self._table,
            offset=0,
            length=len(data),
            line=0,
            stage="transform",
            column=None,
            reason=reason,
            data=data if len(data) <= KEPT_BYTES_MAX else None,
        )


class AggregateSink:
    """Adds rows to a partial aggregate."""

    given = None
    unloadable: ClassVar[list[Unloadable]] = []

    def __init__(self, job: ReadJob, unit: UnitOf, saved: bytes | None) -> None:
        self._job = job
        self._name = spilled_name(unit.job_id, unit.number, secrets.token_hex(3))
        aggregation = Aggregation(job.select, exact_keys=job.exact_keys)
        self._partial = aggregation.unpack(saved) if saved else aggregation.partial()

    def write(self, batch: pa.RecordBatch, renew: Callable[[], None]) -> int:
        rows = self._partial.update(batch)
        check_memory(self._partial.nbytes)
        return rows

    def save(self) -> bytes | None:
        packed = self._partial.pack()
        return packed if len(packed) <= self._job.partial_bytes_max else None

    def result(self) -> bytes:
        packed = self._partial.pack()
        return spill(packed, self._job.partial_bytes_max, self._job.spill, self._name)

    def abandon(self) -> None:
        forget_spilled(self._job.spill, self._name)

    @property
    def parts(self) -> list[PartInfo]:
        return []


class TokenCounts:
    """Counts rows by the range of the ring that their token is in."""

    given = None
    unloadable: ClassVar[list[Unloadable]] = []

    def __init__(self, job: ReadJob, saved: bytes | None) -> None:
        """Start from the job's ring: the tokens that end the ranges, ascending.

        A token beyond the last is in the first range, which wraps around the end of the ring.
        """
        self._where, (token,) = job.select.where, job.select.names
        self._token = token
        self._ends = np.array([token for token, _ in job.ring], np.int64)
        self._counts = np.zeros(len(self._ends), np.int64)
        if saved:
            self._counts += np.frombuffer(saved, np.int64)

    def write(self, batch: pa.RecordBatch, renew: Callable[[], None]) -> int:
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


def open_sink(
    job: ReadJob,
    unit: UnitOf,
    saved: bytes | None,
    transforms: tuple[Transform, ...] = (),
    rejects_max: int = -1,
) -> Sink:
    """Return the sink of one attempt.

    `saved`: the state that the previous attempt saved, if any. `transforms`: the functions that the
    job names. `rejects_max`: see `ReadHooks`.
    """
    if job.ring:
        return TokenCounts(job, saved)
    if job.output is None:
        return AggregateSink(job, unit, saved)
    parts = (saved or b"[]").partition(b"\n")[0]
    earlier = [PartInfo.from_json(part) for part in json.loads(parts)]
    by = job.output.partition_by
    kept = [
        (name, cql_type)
        for name, cql_type in zip(job.written_names, job.written_types, strict=True)
        if name not in by
    ]
    files: PartSet | PartitionedParts = PartSet(
        job.output.url,
        job.output.part_format,
        [name for name, _ in kept],
        [cql_type for _, cql_type in kept],
        job=unit.job_id,
        unit=unit.number,
        attempt=secrets.token_hex(3),
        rows_max=job.output.rows_max,
        bytes_max=job.output.bytes_max,
        first_number=len(earlier),
        tokens=(unit.ranges[0].lo, unit.ranges[-1].hi),
    )
    if by:
        assert isinstance(files, PartSet)
        files = PartitionedParts(files, job.written_names, job.written_types, by)
    if transforms:
        return TransformedParts(job, files, earlier, transforms, rejects_max, saved)
    nuls = job.output.format.kind == "csv" and (job.streams or not job.output.explained)
    return PartsSink(job.select, files, earlier, nuls=nuls)
