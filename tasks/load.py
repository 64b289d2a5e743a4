"""The load task: claim a unit, run it, commit its result, publish what may follow."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from celery import Task

from ringhaul.errors import LedgerUnavailable, Terminal, Transient
from ringhaul.ledger.ledger import Claimed, Lease, Ledger, Refusal
from ringhaul.ledger.reading import JobMissing, Live
from ringhaul.load.job import LoadJob
from ringhaul.load.run import UnitHooks, UnitOutcome, run_load_unit
from ringhaul.load.statement import insert_statement
from ringhaul.load.unit import LoadUnit, UnitResult
from tasks.application import app, process_settings
from tasks.base import UnitTask, attempt_token
from tasks.child import Child, SessionUnavailable, WrongCluster, current_child
from tasks.failpoints import reach
from tasks.names import TaskNames
from tasks.publish import publish_next
from tasks.throttle import RowThrottle

log = logging.getLogger(__name__)

#: How often a running unit renews its lease; each renewal also moves the job's progress.
RENEW_S_MAX = 2.0
#: Pause before a unit that failed is tried again.
RETRY_DELAY_MS = 3000
#: How long a process without a session holds a message before it lets go of it. It bounds how
#: fast a host that cannot reach the cluster drains the queue; the sweep issues the unit again.
NO_SESSION_WAIT_S = 15.0


class UnitStopped(Exception):
    """The job was cancelled or stopped, or the lease went to somebody else."""


@app.task(name=TaskNames.LOAD_UNIT, base=UnitTask, bind=True)
def load_unit(self: Task, *, job: str, unit: int, epoch: int) -> dict[str, Any]:
    """Load one unit, once. The answer is for Flower; the truth is in the ledger."""
    child = current_child(process_settings())
    token = attempt_token(self.request.id, self.request.hostname, os.getpid())
    return work(child, job, unit, epoch, token)


def work(child: Child, job_id: str, unit: int, epoch: int, token: str) -> dict[str, Any]:
    """Claim, run and commit one unit with what `child` holds."""
    try:
        child.session()
    except SessionUnavailable as error:
        log.error("no session, unit %s of %s is left to others: %s", unit, job_id, error)
        time.sleep(NO_SESSION_WAIT_S)
        return {"unit": unit, "skipped": "no session"}
    ledger = child.ledger
    try:
        child.check_cluster(child.job(job_id))
    except (JobMissing, WrongCluster) as error:
        log.error("unit %s of %s is left to others: %s", unit, job_id, error)
        return {"unit": unit, "skipped": str(error)}
    except (ValueError, TypeError, KeyError, Terminal) as error:
        # Made by another version of ringhaul: every try would end like this one.
        reason = f"{child.name} cannot read the job ({type(error).__name__}: {error})"
        log.error("job %s cannot go on: %s", job_id, reason)
        ledger.fail(job_id, f"{reason}; use one version of ringhaul on all hosts")
        return {"unit": unit, "failed": reason}
    claim = ledger.claim(job_id, unit, epoch, token, _lease_ms(child))
    if isinstance(claim, Refusal):
        return {"unit": unit, "skipped": claim.value}
    try:
        result = _attempt(child, job_id, unit, epoch, token, claim)
    except UnitStopped as stop:
        ledger.release(job_id, unit, token)
        return {"unit": unit, "stopped": str(stop)}
    except LedgerUnavailable as error:
        # Nothing can be told now: the lease runs out, and the unit is issued again.
        log.warning("unit %s of %s is left to its lease: %s", unit, job_id, error)
        return {"unit": unit, "left": str(error)}
    except Transient as error:
        log.warning("unit %s of %s will be tried again: %s", unit, job_id, error)
        ledger.release(job_id, unit, token, str(error), blamed=True, delay_ms=RETRY_DELAY_MS)
        return {"unit": unit, "released": str(error)}
    except Terminal as error:
        log.error("job %s cannot go on: %s", job_id, error)
        ledger.fail(job_id, str(error))
        ledger.release(job_id, unit, token)
        return {"unit": unit, "failed": str(error)}
    except (SystemExit, KeyboardInterrupt):
        # The worker is being stopped: nobody is to blame, somebody else can start at once.
        ledger.release(job_id, unit, token)
        raise
    except BaseException as error:
        # MemoryError among them: raised out of a task it would stop the whole worker.
        log.exception("unit %s of %s failed", unit, job_id)
        reason = f"{type(error).__name__}: {error}"
        ledger.release(job_id, unit, token, reason, blamed=True, delay_ms=RETRY_DELAY_MS)
        return {"unit": unit, "released": type(error).__name__}
    reach("after_commit", unit)
    publish_next(ledger, job_id)
    return {"unit": unit, "rows": result.written, "rejected": result.rejected}


def _attempt(
    child: Child, job_id: str, unit: int, epoch: int, token: str, claim: Claimed
) -> UnitResult:
    """Run the claimed unit and commit it."""
    reach("after_claim", unit)
    job = child.job(job_id)
    spec = LoadUnit.unpack(claim.spec)
    outcome = run_load_unit(
        spec,
        job,
        child.target(_statement(job, spec), job.table.keyspace),
        child.bounds,
        UnitHooks(
            tick=_Renewal(child.ledger, job_id, unit, token, _lease_ms(child)),
            throttle=RowThrottle(child.ledger, job_id, job.rate_rows_s),
        ),
    )
    reach("after_write", unit)
    result = _result(child, spec, claim.attempt, outcome)
    child.ledger.commit(
        job_id,
        unit,
        epoch,
        token,
        result.pack(),
        totals={
            "rows": result.written,
            "rejected": result.rejected,
            "bytes": result.input_bytes,
            "retries": result.retries,
        },
        latencies={str(index): count for index, count in outcome.latencies.items()},
        rejects=outcome.rejects_blob,
    )
    return result


def _lease_ms(child: Child) -> int:
    return int(child.settings.worker.lease_s * 1000)


def _statement(job: LoadJob, unit: LoadUnit) -> str:
    columns = [column for _, column in job.sources[unit.source].mapping]
    return insert_statement(job.table, columns, job.ttl_s)


def _result(child: Child, unit: LoadUnit, attempt: int, outcome: UnitOutcome) -> UnitResult:
    return UnitResult(
        source=unit.source,
        records=outcome.records,
        written=outcome.written,
        rejected=outcome.rejected,
        input_bytes=outcome.input_bytes,
        retries=outcome.retries,
        elapsed_ms=outcome.elapsed_ms,
        cpu_ms=outcome.cpu_ms,
        attempt=attempt,
        rss_bytes_max=outcome.rss_bytes_max,
        window_min=outcome.window.limit_min if outcome.window else 0,
        window_max=outcome.window.limit_max if outcome.window else 0,
        window_shrunk=outcome.window.shrunk if outcome.window else 0,
        worker=child.name,
    )


class _Renewal:
    """Renews a lease from the unit's own loop, so that a unit that hangs loses it."""

    def __init__(self, ledger: Ledger, job_id: str, unit: int, token: str, lease_ms: int) -> None:
        self._ledger, self._job_id, self._unit, self._token = ledger, job_id, unit, token
        self._lease_ms = lease_ms
        self._every_s = min(RENEW_S_MAX, lease_ms / 4000)
        self._due = time.monotonic() + self._every_s

    def __call__(self, rows: int, rejected: int, input_bytes: int) -> None:
        reach("mid_write", self._unit)
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every_s
        answer = self._ledger.renew(
            self._job_id,
            self._unit,
            self._token,
            self._lease_ms,
            Live(rows=rows, rejected=rejected, bytes=input_bytes),
        )
        if answer is not Lease.OK:
            raise UnitStopped(answer.value)
