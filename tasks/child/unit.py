"""Work on one unit of any job: claim it, run it, commit its result, publish further units.

The part that depends on the kind of job is a `Runner`: it takes an `Attempt` and returns the result
to commit.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from config.secrets import mask
from ringhaul.breadcrumb import TRAIL, Loss
from ringhaul.causes import cause_of
from ringhaul.cluster.errors import translate_error
from ringhaul.dataplane.base import ConnectionsRefused
from ringhaul.dataplane.pacing import BOUNDLESS
from ringhaul.errors import (
    LedgerUnavailable,
    Terminal,
    TooManyRejects,
    Transient,
    UnitPaused,
)
from ringhaul.ledger.answers import Claimed, Commit, Lease, Refusal
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.transform.errors import TransformError
from tasks.child.declined import (
    drop_damaged,
    leave_to_others,
    leave_to_readers,
    leave_without_session,
    leave_without_transform,
)
from tasks.child.failpoints import holding, reach
from tasks.child.process import Child, SessionUnavailable, WrongCluster
from tasks.child.throttle import JobThrottle
from tasks.child.time_limits import TimeLimits
from tasks.node_name import worker_host
from tasks.publish import publish_next
from tasks.transforms import transforms_of

log = logging.getLogger(__name__)

#: How often a running unit renews its lease. Each renewal also reports progress, and returns a
#: pause, a cancellation or new limits, which must take effect within 2 s.
RENEW_S_MAX = 0.8
#: How often a unit that makes no progress is logged.
LOG_TROUBLE_S = 5.0
#: Delay before a failed unit is retried.
RETRY_DELAY_MS = 3000

#: Error for a job that Redis lost while one of its units was running.
GONE = (
    "Redis has lost the job (it was flushed, restarted without its data, or evicted keys). Rows "
    "that the unit has written stay"
)


class UnitStopped(Exception):
    """The job was cancelled or stopped, or another attempt holds the lease."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt of a claimed unit."""

    child: Child
    job_id: str
    unit: int
    number: int  #: 1-based
    age_ms: int  #: Age of the job at the claim; differs between attempts of a unit
    spec: str  #: Spec of the unit
    #: Returns the last checkpoint of earlier attempts; None if they made none.
    cursor: Callable[[], bytes | None]
    #: Returns where earlier attempts were when their processes died.
    losses: Callable[[], Sequence[Loss]]
    #: Call it often with (rows, rejected, bytes) so far: it renews the lease, reports progress,
    #: and raises `UnitStopped` or `UnitPaused`.
    tick: Callable[[int, int, int], None]
    #: Takes a message about what blocks the unit; the next `tick` reports it.
    trouble: Callable[[str], None]
    #: The job's limits; each `tick` updates them.
    throttle: JobThrottle
    #: Stores a cursor for the next attempt. Raises `UnitStopped`.
    checkpoint: Callable[[bytes], None]
    #: Takes how many rows of a LIMIT the unit has or wants in all, and the LIMIT. Returns how many
    #: it may have, and how many no unit has. Raises `UnitStopped`.
    reserve: Callable[[int, int], tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Done:
    """Outcome of a finished attempt: the arguments of `Ledger.commit`, and a summary for Flower."""

    result: str
    totals: Mapping[str, int]
    latencies: Mapping[int, int] = field(default_factory=dict)  #: bucket (latency.py) -> requests
    extra: bytes = b""
    summary: Mapping[str, Any] = field(default_factory=dict)
    #: How often the window of unanswered requests shrank, and the smallest bound; 0: never.
    window_shrunk: int = 0
    window_min: int = 0
    notes: Sequence[tuple[EventKind, str]] = ()  #: events for the job's history
    #: Removes the attempt's output outside the ledger; called if its commit does not count.
    undo: Callable[[], None] | None = None


Runner = Callable[[Attempt], Done]


def work(
    child: Child, job_id: str, unit: int, epoch: int, token: str, run: Runner
) -> dict[str, Any]:
    """Claim, run and commit one unit. The return value is for Flower."""
    try:
        child.begin_unit()
    except SessionUnavailable as error:
        return leave_without_session(child, job_id, unit, epoch, error)
    ledger = child.ledger
    try:
        claim = _claim(child, job_id, unit, epoch, token)
    except (JobMissing, WrongCluster) as error:
        return leave_to_others(child, job_id, unit, epoch, error)
    except JobDamaged as error:
        return drop_damaged(child, job_id, unit, epoch, error)
    except TransformError as error:
        return leave_without_transform(child, job_id, unit, epoch, error)
    except (ValueError, TypeError, KeyError, Terminal) as error:
        return leave_to_readers(child, job_id, unit, epoch, error)
    if isinstance(claim, Refusal):
        return {"unit": unit, "skipped": claim.value}
    try:
        with _time_limits(child, job_id) as limits:
            done = _attempt(child, job_id, unit, epoch, token, claim, limits, run)
    except BaseException as error:
        TRAIL.end()
        _note(child, job_id, unit, _node_rests(child))
        if isinstance(error, ConnectionsRefused):
            # Another process may need just the connections that this one holds and cannot use.
            child.close()
        try:
            if not _is_repeatable(child, job_id):
                return _give_up(ledger, job_id, unit, token, error)
            return _give_back(ledger, job_id, unit, token, error)
        except JobDamaged as damage:  # nothing about the unit can be recorded
            log.error("unit %s of %s is dropped: %s", unit, job_id, damage)
            return {"unit": unit, "stopped": "damaged"}
    reach("after_commit", unit)
    with suppress(JobDamaged):
        publish_next(ledger, job_id)
    return {"unit": unit, **done.summary}


def _claim(child: Child, job_id: str, unit: int, epoch: int, token: str) -> Claimed | Refusal:
    """Claim a unit of a job for this child's cluster.

    The child's cached spec may belong to an earlier job of the same id; then it is read again.
    Raises as `Child.job`, `Child.check_cluster` and `transforms_of` do.
    """
    kept = child.keeps(job_id)
    claim: Claimed | Refusal = Refusal.OTHER
    try:
        job = child.job(job_id)
        child.check_cluster(job.cluster_name)
        transforms_of(child.settings, job.transforms)  # before the unit counts as started
        created_ms = child.created_ms(job_id)
        claim = child.ledger.claim(
            job_id, unit, epoch, token, _lease_ms(child), created_ms=created_ms
        )
    except WrongCluster:
        if not kept:
            raise
    if not kept or claim is not Refusal.OTHER:
        return claim
    child.forget(job_id)
    return _claim(child, job_id, unit, epoch, token)


def _is_repeatable(child: Child, job_id: str) -> bool:
    """Return whether a unit that was cut short may be run again from the start."""
    return child.job(job_id).repeatable


def _give_up(
    ledger: Ledger, job_id: str, unit: int, token: str, error: BaseException
) -> dict[str, Any]:
    """Give up a unit that must not run twice, as if its process had died."""
    if isinstance(error, UnitStopped) and str(error) == Lease.GONE.value:
        error = UnitStopped(GONE)
    log.error("unit %s of %s is given up half way: %s", unit, job_id, error)
    reason = mask(str(error))
    ledger.lost(job_id, unit, token, fatal=reason if isinstance(error, Terminal) else "")
    if isinstance(error, SystemExit | KeyboardInterrupt):
        raise error
    return {"unit": unit, "failed": reason}


def _give_back(
    ledger: Ledger, job_id: str, unit: int, token: str, error: BaseException
) -> dict[str, Any]:
    """Release the unit for another attempt, or end the job if no attempt can succeed."""
    try:
        raise error
    except UnitStopped as stop:
        if str(stop) == Lease.GONE.value:
            log.warning("unit %s of %s is dropped: %s", unit, job_id, GONE)
        else:
            ledger.release(job_id, unit, token)
        return {"unit": unit, "stopped": str(stop)}
    except TooManyRejects as many:
        live = Live(rows=many.rows, rejected=many.rejected, bytes=many.input_bytes)
        ledger.stop(job_id, unit, token, live, many.rejects_blob)
        return {"unit": unit, "stopped": mask(str(many))}
    except UnitPaused:
        ledger.release(job_id, unit, token)
        return {"unit": unit, "stopped": "PAUSE"}
    except LedgerUnavailable as error:
        # The ledger cannot be reached: the lease runs out, and the unit is issued again.
        log.warning("unit %s of %s is left to its lease: %s", unit, job_id, error)
        return {"unit": unit, "left": mask(str(error))}
    except Transient as error:
        log.warning("unit %s of %s will be retried: %s", unit, job_id, error)
        reason = mask(str(error))
        _blame(ledger, job_id, unit, token, reason, error)
        return {"unit": unit, "released": reason}
    except Terminal as error:
        log.error("job %s cannot continue: %s", job_id, error)
        reason = mask(str(error))
        ledger.release(job_id, unit, token, reason, fatal=True, cause=cause_of(error))
        return {"unit": unit, "failed": reason}
    except (SystemExit, KeyboardInterrupt):
        # The worker is being stopped: blame no one, and let another worker start at once.
        ledger.release(job_id, unit, token)
        raise
    except BaseException as error:
        # Includes MemoryError: if it left the task, it would stop the worker.
        log.exception("unit %s of %s failed", unit, job_id)
        reason = mask(f"{type(error).__name__}: {error}")
        _blame(ledger, job_id, unit, token, reason, error)
        return {"unit": unit, "released": type(error).__name__}


def _blame(
    ledger: Ledger, job_id: str, unit: int, token: str, reason: str, error: BaseException
) -> None:
    """Release the unit for a retry; with one blame too many its job fails."""
    if type(error).__module__.partition(".")[0] == "cassandra":
        error = translate_error(error, where="the cluster")
    cause = cause_of(error) or ("Transient" if isinstance(error, MemoryError) else "")
    ledger.release(job_id, unit, token, reason, blamed=True, delay_ms=RETRY_DELAY_MS, cause=cause)


def _time_limits(child: Child, job_id: str) -> TimeLimits:
    """Return the time limits of a unit that starts now."""
    worker, throttle = child.settings.worker, child.throttle(job_id)
    return TimeLimits(worker.time_limit_soft_s, worker.time_limit_hard_s, lambda: throttle.waited_s)


def _attempt(
    child: Child,
    job_id: str,
    unit: int,
    epoch: int,
    token: str,
    claim: Claimed,
    limits: TimeLimits,
    run: Runner,
) -> Done:
    """Run the claimed unit and commit it."""
    reach("after_claim", unit)
    ledger = child.ledger
    # A unit that may run only once starts after its claim is on Redis's disk. A Redis without an
    # append-only file answers at once that it cannot promise that.
    if not _is_repeatable(child, job_id) and not ledger.make_durable():
        log.warning("unit %s of %s: Redis may forget that it was started", unit, job_id)
    throttle = child.throttle(job_id)
    throttle.set(claim.limits)

    def checkpoint(cursor: bytes) -> None:
        answer = ledger.checkpoint(job_id, unit, token, cursor)
        if answer is not Lease.OK:
            raise UnitStopped(answer.value)
        reach("after_checkpoint", unit)

    def reserve(rows: int, limit: int) -> tuple[int, int]:
        answer = ledger.reserve(job_id, unit, token, rows, limit)
        if answer.lease is not Lease.OK:
            raise UnitStopped(answer.lease.value)
        return answer.rows, answer.left

    renewal = _Renewal(
        ledger,
        job_id,
        unit,
        token,
        lease_ms=_lease_ms(child),
        throttle=throttle,
        limits=limits,
        in_flight=lambda: child.in_flight,
        pausable=_is_repeatable(child, job_id),
    )
    done = run(
        Attempt(
            child=child,
            job_id=job_id,
            unit=unit,
            number=claim.attempt,
            age_ms=claim.at_ms - child.created_ms(job_id),
            spec=claim.spec,
            cursor=lambda: ledger.cursor(job_id, unit),
            losses=lambda: ledger.losses(job_id, unit) if claim.attempt > 1 else (),
            tick=holding(renewal, unit),
            trouble=renewal.trouble,
            throttle=throttle,
            checkpoint=checkpoint,
            reserve=reserve,
        )
    )
    TRAIL.end()
    reach("after_write", unit)
    notes = [*_node_rests(child), *done.notes]
    if done.window_shrunk:
        least = f"to {done.window_min:,} unanswered requests"
        notes.append((EventKind.WINDOW_SHRUNK, least))
    _note(child, job_id, unit, notes)
    answer = ledger.commit(
        job_id,
        unit,
        epoch,
        token,
        done.result,
        totals=done.totals,
        latencies={str(bucket): count for bucket, count in done.latencies.items()},
        extra=done.extra,
    )
    if answer is Commit.STALE:
        log.warning(
            "unit %s of %s is done but not counted: the job has ended, was resumed, or is gone",
            unit,
            job_id,
        )
    # If the first answer to a commit was lost, the repeated commit is refused; but what the ledger
    # holds is then ours, and must stay.
    if (
        answer is not Commit.COUNTED
        and done.undo is not None
        and ledger.extra(job_id, unit) != done.extra
    ):
        done.undo()
    return done


def _node_rests(child: Child) -> list[tuple[EventKind, str]]:
    """Return which nodes were left alone during a unit, and why, for the job's history."""
    return [(EventKind.NODE_REST, mask(reason)) for reason in child.take_rests()]


def _note(child: Child, job_id: str, unit: int, notes: Sequence[tuple[EventKind, str]]) -> None:
    """Add what a unit noticed to the job's history, unless the ledger is unavailable."""
    with suppress(LedgerUnavailable, JobDamaged):  # how the unit ends is what matters
        for kind, text in notes:
            History(child.ledger.caller).note(job_id, kind, text=text, by=worker_host(), unit=unit)


def _lease_ms(child: Child) -> int:
    return int(child.settings.worker.lease_s * 1000)


class _Renewal:
    """Renews a lease from inside the unit's loop, so that a hung unit loses its lease."""

    def __init__(
        self,
        ledger: Ledger,
        job_id: str,
        unit: int,
        token: str,
        *,
        lease_ms: int,
        throttle: JobThrottle,
        limits: TimeLimits,
        in_flight: Callable[[], int],
        pausable: bool,
    ) -> None:
        """`throttle` gets the current limits; `pausable`: a pause may interrupt the unit.

        `in_flight` returns the number of unanswered requests.
        """
        self._ledger, self._job_id, self._unit, self._token = ledger, job_id, unit, token
        self._lease_ms, self._throttle, self._pausable = lease_ms, throttle, pausable
        self._time_limits, self._in_flight = limits, in_flight
        self._every_s = min(RENEW_S_MAX, lease_ms / 4000)
        self._due = time.monotonic() + self._every_s
        self._trouble, self._logged_at = "", -math.inf

    def trouble(self, words: str) -> None:
        """Log why the unit makes no progress, and report it with the next renewal."""
        self._trouble = mask(f"{worker_host()}: {words}")
        now = time.monotonic()
        if now - self._logged_at >= LOG_TROUBLE_S:
            self._logged_at = now
            log.warning("unit %s of %s makes no progress: %s", self._unit, self._job_id, words)

    def __call__(self, rows: int, rejected: int, input_bytes: int) -> None:
        reach("mid_write", self._unit)
        TRAIL.progress()
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every_s
        lease, limits = self._ledger.renew(
            self._job_id,
            self._unit,
            self._token,
            self._lease_ms,
            Live(rows=rows, rejected=rejected, bytes=input_bytes, in_flight=self._in_flight()),
            self._trouble,
        )
        self._trouble = ""
        if lease is Lease.PAUSE and self._pausable:
            raise UnitPaused
        if lease not in (Lease.OK, Lease.PAUSE):
            raise UnitStopped(lease.value)
        # Check before setting new limits: the time until now was under the old ones.
        self._time_limits.look(held=self._throttle.requests_max < BOUNDLESS)
        self._throttle.set(limits)
