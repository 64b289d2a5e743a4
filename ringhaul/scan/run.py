"""Run one unit of a read job: its token ranges, page by page, through WHERE into a sink.

A plain function of its inputs: the Celery task passes in the session, the lease and the cursor;
tests call it directly. A unit holds only a few pages at a time, so memory does not grow with it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ringhaul.cluster.schema import appends
from ringhaul.cql.decode import PageDecoder
from ringhaul.dataplane.pacing import UNTHROTTLED, Pacing, Throttle
from ringhaul.errors import UnitPaused
from ringhaul.output.missing_ranges import MissingRange, join_missing
from ringhaul.output.parts import PartInfo
from ringhaul.output.unloadable_rows import Unloadable, join_unloadable
from ringhaul.process_memory import rss_peak_bytes
from ringhaul.scan.job import ReadJob
from ringhaul.scan.options import ScanOptions, ScanTarget
from ringhaul.scan.partition import partition_key_text
from ringhaul.scan.ranges import spread_ranges
from ringhaul.scan.row_limit import Reserve, RowLimit, reserve_alone
from ringhaul.scan.scan import RangeScan, ignore
from ringhaul.scan.sinks import Given, UnitOf, open_sink
from ringhaul.scan.statement import scan_fetches

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

#: Ranges to split a unit into, for each range that is read at once: a unit is often a single range,
#: part of a range of the ring, and the last range left is read alone.
RANGES_EACH = 2
#: Units that take longer save their position, so that a dead attempt does not lose everything.
CHECKPOINT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class ReadHooks:
    """Callbacks of one unit."""

    #: Called between pages and while waiting with (rows, rejected rows, bytes) so far; raises to
    #: stop the unit: `UnitPaused` lets it save its position first.
    tick: Callable[[int, int, int], None]
    #: Saves a cursor for the next attempt; raises to stop the unit.
    checkpoint: Callable[[bytes], None]
    #: Called with a message for each failed read.
    trouble: Callable[[str], None] = ignore
    #: Limits of the whole job, in rows read and bytes of their pages.
    throttle: Throttle = UNTHROTTLED
    #: Rows of this unit that transforms may reject; with more it stops. -1: no limit.
    rejects_max: int = -1
    #: Hands out the LIMIT of a job whose units share it.
    reserve: Reserve | None = None
    checkpoint_s: float = CHECKPOINT_S


@dataclass(kw_only=True)
class ReadOutcome:
    """The outcome of a unit, before it is committed."""

    rows: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    pages: int = 0
    retries: int = 0
    splits: int = 0
    missing: tuple[MissingRange, ...] = ()  #: ranges that could not be read and were skipped
    unloadable: tuple[Unloadable, ...] = ()  #: rows that cannot be loaded again
    latencies: Counter[int]
    extra: bytes = b""  #: what the sink returned at the end
    parts: list[PartInfo]
    given: Given | None  #: rows that went into transforms, if the job has any
    undo: Callable[[], None]  #: removes the parts that no cursor names
    elapsed_ms: int = 0
    cpu_ms: int = 0
    rss_bytes_max: int = 0


@dataclass(frozen=True)
class _Saved:
    """A cursor: the position of the scan, counts, skipped ranges, and the state of the sink."""

    scan: str | None = None
    rows: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    sink: bytes | None = None
    missing: tuple[MissingRange, ...] = ()
    unloadable: tuple[Unloadable, ...] = ()

    def pack(self) -> bytes:
        missing = [one.to_json() for one in self.missing]
        unloadable = [one.to_json() for one in self.unloadable]
        head = [self.scan, self.rows, self.rows_read, self.bytes_read, missing, unloadable]
        return json.dumps(head).encode() + b"\n" + (self.sink or b"")

    @classmethod
    def unpack(cls, packed: bytes | None) -> _Saved:
        if packed is None:
            return cls()
        head, _, sink = packed.partition(b"\n")
        scan, rows, rows_read, bytes_read, missing, unloadable = json.loads(head)
        left_out = tuple(map(MissingRange.from_json, missing))
        odd = tuple(map(Unloadable.from_json, unloadable))
        return cls(scan, rows, rows_read, bytes_read, sink, left_out, odd)


def run_read_unit(
    unit: UnitOf,
    job: ReadJob,
    target: ScanTarget,
    options: ScanOptions,
    hooks: ReadHooks,
    cursor: bytes | None = None,
    transforms: tuple[Transform, ...] = (),
) -> ReadOutcome:
    """Read the rows of one unit into the sink of its job.

    `cursor`: what an earlier attempt passed to `hooks.checkpoint`. `transforms`: the functions that
    the job names. Raises `ClusterError` (terminal: no row can be read), `ReadFailed` (transient:
    the unit may be retried), what the sink raises (a full disk; `TooManyRejects`, see `ReadHooks`),
    and whatever the hooks raise to stop it.
    """
    started, cpu_started = time.monotonic(), time.process_time()
    saved = _Saved.unpack(cursor)
    rows, rows_read, bytes_before = saved.rows, saved.rows_read, saved.bytes_read

    def tick() -> None:
        rejected = sink.given.rejected if sink.given else 0
        hooks.tick(rows, rejected, bytes_before + scan.stats.bytes)

    pause: UnitPaused | None = None

    def renew() -> None:
        """Tick within a batch; a pause waits for its end, because a batch cannot be split."""
        nonlocal pause
        try:
            tick()
        except UnitPaused as signal:
            pause = signal

    fetches = scan_fetches(job.select)
    decoder = PageDecoder(
        [fetch.name for fetch in fetches],
        [fetch.type for fetch in fetches],
        # Transforms and aggregates get the values that the driver would return.
        marks=job.output is not None and not transforms,
        appended=[column.name for column in job.table.columns if appends(column.cql_type)],
    )

    pacing = Pacing(hooks.throttle, tick)
    at_once = options.at_once(target.reader.distance_s)
    ranges = spread_ranges(unit.ranges, RANGES_EACH * at_once)
    scan = RangeScan(
        target,
        ranges,
        decoder,
        options,
        tick=tick,
        leave=pacing.leave,
        cursor=saved.scan,
        on_trouble=hooks.trouble,
        partition_of=partial(partition_key_text, target.reader, job.table),
    )
    sink = open_sink(job, unit, saved.sink, transforms, hooks.rejects_max)
    limit = _row_limit(job, hooks)

    def taken() -> int:
        """Return how many rows count towards the job's LIMIT."""
        return sink.given.rows if sink.given else rows

    save_due = time.monotonic() + hooks.checkpoint_s
    bytes_paid = 0

    def unloadable() -> tuple[Unloadable, ...]:
        return tuple(join_unloadable([*saved.unloadable, *sink.unloadable]))

    def save() -> None:
        kept = sink.save()
        if kept is not None:
            read = bytes_before + scan.stats.bytes
            missing = (*saved.missing, *scan.missing)
            cursor = scan.cursor()
            hooks.checkpoint(
                _Saved(cursor, rows, rows_read, read, kept, missing, unloadable()).pack()
            )

    try:
        try:
            limit.allow(taken())
            for batch in scan.batches() if not limit.is_reached(taken()) else ():
                rows_read += batch.num_rows
                if job.limit is not None:
                    batch = job.select.where.filter(batch)
                    batch = batch.slice(0, limit.allow(taken(), batch.num_rows))
                rows += sink.write(batch, renew)
                if pause is not None:
                    raise pause
                tick()
                pacing.pay(batch.num_rows, scan.stats.bytes - bytes_paid)
                bytes_paid = scan.stats.bytes
                if limit.is_reached(taken()):
                    break
                if time.monotonic() >= save_due:
                    save()
                    save_due = time.monotonic() + hooks.checkpoint_s
            pacing.pay(0, scan.stats.bytes - bytes_paid)  # pages without rows
        except UnitPaused:
            # Every batch handed out was taken whole: `renew` only delays a pause.
            if scan.stats.pages:
                save()
            raise
        limit.allow(taken())
        extra = sink.result()
    except BaseException:
        sink.abandon()
        raise
    finally:
        scan.close()
    return ReadOutcome(
        rows=rows,
        rows_read=rows_read,
        bytes_read=bytes_before + scan.stats.bytes,
        pages=scan.stats.pages,
        retries=scan.stats.retries,
        splits=scan.stats.splits,
        missing=tuple(join_missing([*saved.missing, *scan.missing])),
        unloadable=unloadable(),
        latencies=scan.stats.latencies,
        extra=extra,
        parts=sink.parts,
        given=sink.given,
        undo=sink.abandon,
        elapsed_ms=int((time.monotonic() - started) * 1000),
        cpu_ms=int((time.process_time() - cpu_started) * 1000),
        rss_bytes_max=rss_peak_bytes(),
    )


def _row_limit(job: ReadJob, hooks: ReadHooks) -> RowLimit:
    if not job.shares_limit:
        return RowLimit(None if job.limit is None else reserve_alone(job.limit))
    assert hooks.reserve is not None
    return RowLimit(hooks.reserve)
