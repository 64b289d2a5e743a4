"""Run one load unit: read its range in blocks, encode, write, account for every record.

A plain function of its inputs: the Celery task around it lends the session, the lease and the
throttle, tests call it directly. The unit is read in blocks of about a MiB, never whole, so memory
does not grow with the unit.
"""

from __future__ import annotations

import logging
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringhaul.cluster.connect import consistency_level
from ringhaul.errors import TooManyRejects
from ringhaul.formats.sources import check_unchanged
from ringhaul.load.job import LoadJob
from ringhaul.load.pacing import UNTHROTTLED, Pacing, Throttle
from ringhaul.load.reading import read_unit
from ringhaul.load.rejects import RejectLog
from ringhaul.load.rows import EncodedRows, RowEncoder
from ringhaul.load.tally import Tally
from ringhaul.load.unit import TO_THE_END, LoadUnit
from ringhaul.load.write import WRITERS, Target, WriteBounds, WriterHooks
from ringhaul.load.write.window import WindowStats
from ringhaul.load.write.wire import WireUnsupported

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

log = logging.getLogger(__name__)

#: What writes where the server does not speak what the pipeline needs.
FALLBACK_STRATEGY = "token-batch"


@dataclass(frozen=True, kw_only=True)
class UnitHooks:
    """What the unit asks of whoever runs it."""

    #: Called between blocks and while waiting; renews the lease, raises to stop the unit.
    #: Gets (rows written, rejects, input bytes) so far.
    tick: Callable[[int, int, int], None]
    #: Limits of the whole job. Rows are those that are sent, bytes those of the input.
    throttle: Throttle = UNTHROTTLED
    #: With more rejects than these the unit ends at its next block. -1: it does not.
    rejects_max: int = -1


@dataclass(frozen=True, kw_only=True)
class UnitOutcome:
    """What a unit did, before it is committed."""

    records: int
    dropped: int  #: records that a transform left out
    filtered: int  #: records that the job's condition left out
    written: int  #: rows
    rejected: int
    rejects_blob: bytes  #: see `RejectLog`
    input_bytes: int
    retries: int
    latencies: Counter[int]
    window: WindowStats | None  #: what the adaptive window decided, where there is one
    elapsed_ms: int
    cpu_ms: int
    rss_bytes_max: int


def run_load_unit(
    unit: LoadUnit,
    job: LoadJob,
    target: Target,
    bounds: WriteBounds,
    hooks: UnitHooks,
    transforms: tuple[Transform, ...] = (),
) -> UnitOutcome:
    """Load the records of one unit. Returns when every row was answered.

    `transforms`: those that the job names. Raises `SourceChanged` or `SourceCorrupt` (terminal),
    `TransformError` (terminal: a transform gives what is no result), `ClusterError` (terminal: no
    row of the job can be written), `WriteFailed` (transient: the unit may be tried again),
    `TooManyRejects` (see `UnitHooks`) and whatever `hooks.tick` raises to stop it.
    """
    encoder = RowEncoder(job, job.sources[unit.source], transforms)
    if job.strategy != "pipeline" or target.plane.unsupported:
        strategy = FALLBACK_STRATEGY if job.strategy == "pipeline" else job.strategy
        return _run_unit(unit, job, encoder, strategy, target, bounds, hooks)
    try:
        return _run_unit(unit, job, encoder, job.strategy, target, bounds, hooks)
    except WireUnsupported as error:
        # Said once: the plane remembers. What was sent already is sent again, which is harmless.
        target.plane.unsupported = True
        log.warning("writing through the driver (%s) instead: %s", FALLBACK_STRATEGY, error)
        return _run_unit(unit, job, encoder, FALLBACK_STRATEGY, target, bounds, hooks)


def _run_unit(
    unit: LoadUnit,
    job: LoadJob,
    encoder: RowEncoder,
    strategy: str,
    target: Target,
    bounds: WriteBounds,
    hooks: UnitHooks,
) -> UnitOutcome:
    """One attempt with one strategy."""
    started, cpu_started = time.monotonic(), time.process_time()
    source = job.sources[unit.source]
    rejects, tally = RejectLog(), Tally()
    input_bytes = 0
    row_bytes = 0.0  # of input, for each row that was encoded last

    def tick() -> None:
        hooks.tick(writer.stats.written, rejects.count, input_bytes)

    pacing = Pacing(hooks.throttle, tick)

    def throttle(rows: int) -> None:
        pacing.pay(rows, int(rows * row_bytes))

    def on_reject(rows: EncodedRows, row: int, reason: str) -> None:
        if tally.refuse(rows, row):
            record = int(rows.records[row])
            rejects.add([encoder.reject(rows.block, record, "write", None, reason)])

    options = bounds.options(strategy, consistency_level(job.consistency))
    writer_hooks = WriterHooks(
        tick=tick, throttle=throttle, on_reject=on_reject, leave=pacing.leave
    )
    writer = WRITERS[strategy](target, options, writer_hooks)
    try:
        for block in read_unit(unit, job):
            if 0 <= hooks.rejects_max < rejects.count:
                # There is more to read. At its end a unit is committed, which stops the job, too.
                raise TooManyRejects(
                    writer.stats.written, rejects.count, input_bytes, rejects.blob()
                )
            for part in encoder.parts(block, tick):
                tally.take(part)
                rejects.add(part.rejects)
                part_bytes = block.size_bytes * part.records / block.records_count
                rows_count = sum(map(len, part.rows))
                if rows_count:
                    row_bytes = part_bytes / rows_count
                else:
                    pacing.pay(0, int(part_bytes))
                for rows in part.rows:
                    writer.write(rows)
            input_bytes += block.size_bytes
            tick()
            if block.position.ordinal + block.records_count >= job.ordinal_end:
                break
        writer.flush()
    finally:
        writer.close()
    check_unchanged(source.file)
    tally.check(writer.stats.written, f"{source.file.path} at byte {unit.offset_bytes}")
    return UnitOutcome(
        records=tally.records,
        dropped=tally.dropped,
        filtered=tally.filtered,
        written=writer.stats.written,
        rejected=rejects.count,
        rejects_blob=rejects.blob(),
        input_bytes=unit.length_bytes if unit.length_bytes != TO_THE_END else input_bytes,
        retries=writer.stats.retries,
        latencies=writer.stats.latencies,
        window=writer.stats.window,
        elapsed_ms=int((time.monotonic() - started) * 1000),
        cpu_ms=int((time.process_time() - cpu_started) * 1000),
        rss_bytes_max=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )
