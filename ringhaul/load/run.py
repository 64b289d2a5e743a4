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

from ringhaul.cluster.connect import consistency_level
from ringhaul.errors import Terminal
from ringhaul.formats.sources import check_unchanged
from ringhaul.load.job import LoadJob
from ringhaul.load.reading import read_unit
from ringhaul.load.rejects import RejectLog
from ringhaul.load.rows import EncodedRows, RowEncoder
from ringhaul.load.unit import TO_THE_END, LoadUnit
from ringhaul.load.write import TICK_S, WRITERS, Target, WriteBounds, WriterHooks
from ringhaul.load.write.window import WindowStats
from ringhaul.load.write.wire import WireUnsupported

log = logging.getLogger(__name__)

#: What writes where the server does not speak what the pipeline needs.
FALLBACK_STRATEGY = "token-batch"


@dataclass(frozen=True, kw_only=True)
class UnitHooks:
    """What the unit asks of whoever runs it."""

    #: Called between blocks and while waiting; renews the lease, raises to stop the unit.
    #: Gets (rows written, rejects, input bytes) so far.
    tick: Callable[[int, int, int], None]
    #: Seconds to wait before this many more rows may be sent (rate limit of the whole job).
    throttle: Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class UnitOutcome:
    """What a unit did, before it is committed."""

    records: int
    written: int
    rejected: int
    rejects_blob: bytes  #: see `RejectLog`
    input_bytes: int
    retries: int
    latencies: Counter[int]
    window: WindowStats | None  #: what the adaptive window decided, where there is one
    elapsed_ms: int
    cpu_ms: int
    rss_bytes_max: int


class UnitMiscounted(Terminal):
    """Rows written and rejected do not add up to the records read: a defect in ringhaul."""


def run_load_unit(
    unit: LoadUnit, job: LoadJob, target: Target, bounds: WriteBounds, hooks: UnitHooks
) -> UnitOutcome:
    """Load the records of one unit. Returns when every row was answered.

    Raises `SourceChanged` or `SourceCorrupt` (terminal), `ClusterError` (terminal: no row of the
    job can be written), `WriteFailed` (transient: the unit may be tried again) and whatever
    `hooks.tick` raises to stop it.
    """
    if job.strategy != "pipeline" or target.plane.unsupported:
        strategy = FALLBACK_STRATEGY if job.strategy == "pipeline" else job.strategy
        return _run_unit(unit, job, strategy, target, bounds, hooks)
    try:
        return _run_unit(unit, job, job.strategy, target, bounds, hooks)
    except WireUnsupported as error:
        # Said once: the plane remembers. What was sent already is sent again, which is harmless.
        target.plane.unsupported = True
        log.warning("writing through the driver (%s) instead: %s", FALLBACK_STRATEGY, error)
        return _run_unit(unit, job, FALLBACK_STRATEGY, target, bounds, hooks)


def _run_unit(
    unit: LoadUnit,
    job: LoadJob,
    strategy: str,
    target: Target,
    bounds: WriteBounds,
    hooks: UnitHooks,
) -> UnitOutcome:
    """One attempt with one strategy."""
    started, cpu_started = time.monotonic(), time.process_time()
    source = job.sources[unit.source]
    rejects = RejectLog()
    encoder = RowEncoder(job, source)
    records = input_bytes = 0

    def tick() -> None:
        hooks.tick(writer.stats.written, rejects.count, input_bytes)

    def throttle(rows: int) -> None:
        due = time.monotonic() + hooks.throttle(rows)
        while (left := due - time.monotonic()) > 0:
            time.sleep(min(left, TICK_S))
            tick()

    def on_reject(rows: EncodedRows, row: int, reason: str) -> None:
        record = int(rows.records[row])
        rejects.add([encoder.reject(rows.block, record, "write", None, reason)])

    options = bounds.options(strategy, consistency_level(job.consistency))
    writer_hooks = WriterHooks(tick=tick, throttle=throttle, on_reject=on_reject)
    writer = WRITERS[strategy](target, options, writer_hooks)
    try:
        for block in read_unit(unit, job):
            rows, refused, asked = encoder.encode(block)
            rejects.add(refused)
            if rows is not None:
                writer.write(rows)
            records += asked
            input_bytes += block.size_bytes
            tick()
            if block.position.ordinal + block.records_count >= job.ordinal_end:
                break
        writer.flush()
    finally:
        writer.close()
    check_unchanged(source.file)
    if writer.stats.written + rejects.count != records:
        raise UnitMiscounted(
            f"{source.file.path} at byte {unit.offset_bytes}: {records} records, "
            f"{writer.stats.written} written and {rejects.count} rejected; please report this"
        )
    return UnitOutcome(
        records=records,
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
