"""Run one load unit: read its range in blocks, encode, write, account for every record.

A plain function of its inputs: the Celery task around it provides the session, the lease and the
throttle; tests call it directly. The unit is read in blocks of about 2 MiB, never whole, so memory
does not grow with the unit.
"""

from __future__ import annotations

import logging
import time
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from ringhaul.cluster.connect import consistency_level
from ringhaul.dataplane.base import ConnectionsRefused
from ringhaul.dataplane.connection import WireUnsupported
from ringhaul.errors import UsageError
from ringhaul.load.write import WRITERS, RequestBounds, Target, Writer, WriterHooks
from ringhaul.records.account import Account, UnitHooks, UnitOutcome
from ringhaul.records.job import LoadJob
from ringhaul.records.rows import EncodedRows, RowEncoder
from ringhaul.records.unit import LoadUnit

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

log = logging.getLogger(__name__)

#: Strategies of the data plane, and what to use if the server does not support what they need.
PLANE_STRATEGIES = ("pipeline", "single")
FALLBACK_STRATEGY = "token-batch"


def run_load_unit(
    unit: LoadUnit,
    job: LoadJob,
    target: Target,
    bounds: RequestBounds,
    hooks: UnitHooks,
    transforms: tuple[Transform, ...] = (),
    later_us: int = 0,
) -> UnitOutcome:
    """Load the records of one unit. Returns when every row was answered.

    `transforms`: the job's transforms. `later_us` increases with each attempt of the unit, see
    `EncodedRows.later`. Raises `SourceChanged` or `SourceCorrupt` (terminal),
    `TransformError` (terminal: a transform returned an invalid result), `ClusterError` (terminal:
    no row of the job can be written), `RequestFailed` (transient: the unit may be retried),
    `TooManyRejects` (see `UnitHooks`), `UsageError` (terminal: a job of an older version has a
    strategy that is gone) and whatever `hooks.tick` raises to stop the unit.
    """
    if job.strategy not in WRITERS:
        raise UsageError(
            f"the job's strategy {job.strategy} is not in this version of ringhaul: start the load "
            f"again with {', '.join(WRITERS)}"
        )
    began_s = time.monotonic()

    def encoder(later_us: int) -> RowEncoder:
        return RowEncoder(job, job.sources[unit.source], transforms, later_us, unit.source_ordinal)

    def fall_back() -> UnitOutcome:
        # Each millisecond makes rows a microsecond later: less time than any attempt takes.
        passed_ms = int((time.monotonic() - began_s) * 1000)
        again = encoder(later_us + passed_ms)
        return _run_unit(unit, job, again, FALLBACK_STRATEGY, target, bounds, hooks)

    on_plane = job.strategy in PLANE_STRATEGIES
    first = encoder(later_us)
    if not job.repeatable:  # the driver would send rows again
        return _run_unit(unit, job, first, job.strategy, target, bounds, hooks)
    if not on_plane or target.plane.unsupported:
        strategy = FALLBACK_STRATEGY if on_plane else job.strategy
        return _run_unit(unit, job, first, strategy, target, bounds, hooks)
    try:
        return _run_unit(unit, job, first, job.strategy, target, bounds, hooks)
    except WireUnsupported as error:
        # Logged once: the plane remembers. Rows that were sent are sent again, which is harmless.
        target.plane.unsupported = True
        log.warning("writing through the driver (%s) instead: %s", FALLBACK_STRATEGY, error)
        return fall_back()
    except ConnectionsRefused as error:
        # The driver's session already has a connection. The next unit tries for connections again.
        log.warning("writing this unit through the driver (%s): %s", FALLBACK_STRATEGY, error)
        return fall_back()


def _run_unit(
    unit: LoadUnit,
    job: LoadJob,
    encoder: RowEncoder,
    strategy: str,
    target: Target,
    bounds: RequestBounds,
    hooks: UnitHooks,
) -> UnitOutcome:
    """Run one attempt with one strategy."""
    account = Account(unit, job, encoder, hooks)

    def on_reject(rows: EncodedRows, row: int, reason: str) -> None:
        account.refuse(rows, {row: ("write", None, reason)})

    options = bounds.options(strategy, consistency_level(job.consistency))
    writer_hooks = WriterHooks(
        tick=account.tick,
        throttle=account.throttle,
        on_reject=on_reject,
        leave=account.leave,
        place=account.place,
        stats=account.stats,
    )
    writers: dict[bool, Writer] = {}
    try:
        for static, blocks in groupby(account.rows(), attrgetter("static")):
            if static not in writers:
                writers[static] = WRITERS[strategy](target.of(static=static), options, writer_hooks)
            for rows in blocks:
                writers[static].write(rows)
            # Writers share the connections; each writer takes only answers to its own requests.
            writers[static].flush()
    finally:
        for writer in writers.values():
            writer.close()
    return account.outcome()
