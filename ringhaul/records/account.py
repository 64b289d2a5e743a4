"""Turn the records of one unit into rows, with each record accounted for.

Callers that write or compare the rows take them block by block, and report rows that fail. This
module does the rest for all callers: it reads the unit's range, keeps the job's limits, counts, and
gives the outcome at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ringhaul.breadcrumb import TRAIL, Loss
from ringhaul.cql.clock_changes import REPEATED
from ringhaul.dataplane.base import RequestStats
from ringhaul.dataplane.pacing import UNTHROTTLED, Pacing, Throttle
from ringhaul.dataplane.window import WindowStats
from ringhaul.errors import Terminal, TooManyRejects
from ringhaul.process_memory import rss_peak_bytes
from ringhaul.records.careful_blocks import careful_blocks
from ringhaul.records.field_readers import Fault
from ringhaul.records.job import LoadJob
from ringhaul.records.reading import check_source, read_unit
from ringhaul.records.rejects import RejectLog
from ringhaul.records.rows import EncodedRows, Part, RowEncoder
from ringhaul.records.unit import TO_THE_END, LoadUnit


@dataclass(frozen=True, kw_only=True)
class UnitHooks:
    """What a unit needs from its caller."""

    #: Called between blocks, while reading a block and while waiting; renews the lease, raises to
    #: stop the unit. Gets (rows done, rejects, input bytes) so far.
    tick: Callable[[int, int, int], None]
    #: Rate limits of the complete job: on rows sent, and on bytes of input; if SSTables are
    #: streamed, on bytes sent.
    throttle: Throttle = UNTHROTTLED
    #: With more rejects than this, the unit ends at its next block. -1: no limit.
    rejects_max: int = -1
    #: Lost attempts of the unit, with the records that each was working on.
    losses: Sequence[Loss] = ()


@dataclass(frozen=True, kw_only=True)
class UnitOutcome:
    """What a unit did, before it is committed."""

    records: int
    dropped: int  #: records that a transform left out
    filtered: int  #: records that the job's condition left out
    written: int  #: rows; in a verification, rows that are the same in the table
    rejected: int
    rejects_blob: bytes  #: see `RejectLog`
    input_bytes: int
    retries: int
    latencies: Counter[int]
    window: WindowStats | None  #: decisions of the adaptive window; None: without a window
    elapsed_ms: int
    cpu_ms: int
    rss_bytes_max: int
    #: Local times that occur twice and were read as the first: see `RepeatedTimes`.
    repeated_times: int


class Account:
    """One attempt of a unit."""

    def __init__(
        self,
        unit: LoadUnit,
        job: LoadJob,
        encoder: RowEncoder,
        hooks: UnitHooks,
        *,
        pays_input: bool = True,
    ) -> None:
        """`pays_input`: whether the limit on bytes counts the bytes of input. Otherwise the caller
        pays for what it sends, with `spend`."""
        self.stats = RequestStats()  #: about what is done with the rows
        self._unit, self._job, self._encoder, self._hooks = unit, job, encoder, hooks
        self._source = job.sources[unit.source]
        self._rejects, self._tally = RejectLog(), Tally()
        self._pacing = Pacing(hooks.throttle, self.tick)
        self.leave, self.spend = self._pacing.leave, self._pacing.spend
        self._pays_input = pays_input
        self._input_bytes = 0
        self._block_bytes = 0  # size of the block that is being worked on
        self._written_before = 0  # rows, when it started
        self._row_bytes = 0.0  # bytes of input per row, for the rows that were encoded last
        self._repeated_before = REPEATED.count
        self._started, self._cpu_started = time.monotonic(), time.process_time()

    def rows(self) -> Iterator[EncodedRows]:
        """Yield the unit's rows. A caller that takes the next rows has sent the previous rows.

        Raises `TooManyRejects` (see `UnitHooks`), what `hooks.tick` raises, and what `read_unit`
        does.
        """
        path, losses = self._source.file.path, self._hooks.losses
        TRAIL.at("read", path, self._unit.first_line)
        blocks = read_unit(self._unit, self._job, self.tick)
        for block, loss in careful_blocks(blocks, losses):
            if 0 <= self._hooks.rejects_max < self._rejects.count:
                # Only if there is more: a unit at its end is committed, which also stops the job.
                raise TooManyRejects(
                    self.stats.written,
                    self._rejects.count,
                    self._input_bytes,
                    self._rejects.blob(),
                )
            self._block_bytes, self._written_before = block.size_bytes, self.stats.written
            first = block.position.ordinal
            TRAIL.at("convert", path, block.position.line, first, first + block.records_count)
            parts = self._encoder.parts(block, self.tick)
            if loss is not None:
                parts = self._encoder.left_out(block, loss)
            for part in parts:
                self._tally.take(part)
                self._rejects.add(part.rejects)
                part_bytes = block.size_bytes * part.records / block.records_count
                rows_count = sum(map(len, part.rows))
                if rows_count:
                    self._row_bytes = part_bytes / rows_count
                elif self._pays_input:
                    self._pacing.pay(0, int(part_bytes))
                TRAIL.stage("write")
                yield from part.rows
                TRAIL.stage("convert")
            TRAIL.at("read", path, block.position.line, first + block.records_count)
            self._input_bytes, self._block_bytes = self._input_bytes + block.size_bytes, 0
            self.tick()
            if block.position.ordinal + block.records_count >= self._encoder.ordinal_end:
                return

    def tick(self) -> None:
        """Call this often: see `UnitHooks`. For a block in progress, which may take minutes, the
        estimated bytes of its written rows are reported."""
        written = self.stats.written - self._written_before
        part_bytes = min(int(written * self._row_bytes), self._block_bytes)
        self._hooks.tick(self.stats.written, self._rejects.count, self._input_bytes + part_bytes)

    def throttle(self, rows: int) -> None:
        """Call this before sending that many rows: it waits while the job's limit is used up."""
        self._pacing.pay(rows, int(rows * self._row_bytes) if self._pays_input else 0)

    def refuse(self, rows: EncodedRows, faults: Mapping[int, Fault]) -> None:
        """Reject the records of some rows, given by index, whatever becomes of their other rows."""
        first = {
            int(rows.records[row]): faults[row]
            for row in sorted(faults)
            if self._tally.refuse(rows, row)
        }
        self._rejects.add(self._encoder.rejects(rows.block, first))

    def place(self, rows: EncodedRows, row: int) -> str:
        """Return the file and line of a row's record, for messages."""
        record = int(rows.records[row])
        reject = self._encoder.reject(rows.block, record, "write", None, "")
        return f"{reject.file}, line {reject.line}"

    def outcome(self) -> UnitOutcome:
        """Return what the unit did, once every row is done or refused. Call it only once.

        Raises `SourceChanged` if the source is no longer what was read.
        """
        unit, tally = self._unit, self._tally
        check_source(unit, self._job)
        place = f"{self._source.file.path} at byte {unit.offset_bytes}"
        tally.check(self.stats.written, place)
        return UnitOutcome(
            records=tally.records,
            dropped=tally.dropped,
            filtered=tally.filtered,
            # Where columns have their own times, a row of the table takes several statements.
            written=tally.loaded if self._source.splits_rows else self.stats.written,
            rejected=self._rejects.count,
            rejects_blob=self._rejects.blob(),
            input_bytes=(
                unit.length_bytes if unit.length_bytes != TO_THE_END else self._input_bytes
            ),
            retries=self.stats.retries,
            latencies=self.stats.latencies,
            window=self.stats.window,
            elapsed_ms=int((time.monotonic() - self._started) * 1000),
            cpu_ms=int((time.process_time() - self._cpu_started) * 1000),
            rss_bytes_max=rss_peak_bytes(),
            repeated_times=REPEATED.count - self._repeated_before,
        )


class UnitMiscounted(Terminal):
    """The counted records do not add up to the number that was read: a bug in ringhaul."""


class Tally:
    """The records of one unit: each is loaded, dropped by a transform, filtered or rejected."""

    def __init__(self) -> None:
        self.records = self.loaded = self.dropped = self.filtered = self.rejected = 0
        self._rows = self._refused = 0
        #: Ordinals of records with a row that the server refused.
        self._refused_records: set[int] = set()

    def take(self, part: Part) -> None:
        """Count what an encoder returned; its rows are on their way to the server."""
        self.records += part.records
        self.loaded += part.loaded
        self.dropped += part.dropped
        self.filtered += part.filtered
        self.rejected += len(part.rejects)
        self._rows += sum(map(len, part.rows))

    def refuse(self, rows: EncodedRows, row: int) -> bool:
        """Count a row that the server refused; return whether it is the first of its record.

        The record is rejected although other rows of it may be in the table.
        """
        self._refused += 1
        ordinal = rows.block.position.ordinal + int(rows.records[row])
        if ordinal in self._refused_records:
            return False
        self._refused_records.add(ordinal)
        self.loaded -= 1
        self.rejected += 1
        return True

    def check(self, written: int, place: str) -> None:
        """Raise `UnitMiscounted` unless every record and every row is accounted for."""
        known = self.loaded + self.dropped + self.filtered + self.rejected
        if known != self.records or written + self._refused != self._rows:
            raise UnitMiscounted(
                f"{place}: {self.records} records, of which {self.loaded} loaded, {self.dropped} "
                f"dropped, {self.filtered} filtered and {self.rejected} rejected; {self._rows} "
                f"rows, of which {written} written and {self._refused} refused; please report this"
            )
