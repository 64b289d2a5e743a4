"""Units whose messages reached a process that cannot work on them: without a session, connected to
another cluster, of a version that cannot read the job, or on a host without a job's transform.

The process hands the unit back, with the reason, which users see as long as the job gets no work
done. It ends the job only if no worker could do better. Functions return what Flower shows.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Any

from config.secrets import mask
from ringhaul import __version__
from ringhaul.causes import cause_of
from ringhaul.errors import LedgerUnavailable, RinghaulError
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.formats import OtherFormat
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.ledger import OTHERS_DELAY_MS, Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.workers import Worker, Workers
from ringhaul.transform.errors import TransformError
from tasks.child.process import Child
from tasks.node_name import worker_host

log = logging.getLogger(__name__)

#: How long a process without a session takes no other message. It limits how many units a host
#: that cannot reach the cluster declines.
NO_SESSION_WAIT_S = 15.0
#: How long a process that cannot read a job takes no other message. It is always free, and would
#: otherwise take units faster than the processes that can read them.
UNREADABLE_WAIT_S = 1.0


def leave_without_session(
    child: Child, job_id: str, unit: int, epoch: int, error: RinghaulError
) -> dict[str, Any]:
    """Hand back a unit because this process cannot reach the cluster."""
    log.error("no session, unit %s of %s is left to others: %s", unit, job_id, error)
    _decline(child, job_id, unit, epoch, str(error))
    time.sleep(NO_SESSION_WAIT_S)
    return {"unit": unit, "skipped": "no session"}


def leave_to_others(
    child: Child, job_id: str, unit: int, epoch: int, error: RinghaulError
) -> dict[str, Any]:
    """Hand back a unit of a job that is unknown here, or is for another cluster."""
    log.error("unit %s of %s is left to others: %s", unit, job_id, error)
    _decline(child, job_id, unit, epoch, str(error), delay_ms=OTHERS_DELAY_MS)
    return {"unit": unit, "skipped": mask(str(error))}


def drop_damaged(
    child: Child, job_id: str, unit: int, epoch: int, error: JobDamaged
) -> dict[str, Any]:
    """Drop a unit of a job of which Redis has lost a part: no worker can run it."""
    log.error("unit %s of %s is dropped: %s", unit, job_id, error)
    with suppress(JobDamaged, JobMissing):  # do not let it look running
        child.ledger.fail(
            job_id, mask(str(error)), epoch=epoch, by=worker_host(), cause=cause_of(error)
        )
    return {"unit": unit, "skipped": "damaged"}


def leave_to_readers(
    child: Child, job_id: str, unit: int, epoch: int, error: Exception
) -> dict[str, Any]:
    """Hand back a unit of a job that this version of ringhaul cannot read; end the job if no live
    worker can read it."""
    what = str(error) if isinstance(error, OtherFormat) else f"{type(error).__name__}: {error}"
    reason = mask(f"cannot read the job ({what})")
    if any(_may_read(worker, error) for worker in Workers(child.ledger.caller).alive()):
        log.error("unit %s of %s is left to others: it %s", unit, job_id, reason)
        _decline(child, job_id, unit, epoch, reason, delay_ms=OTHERS_DELAY_MS)
        time.sleep(UNREADABLE_WAIT_S)
        return {"unit": unit, "skipped": reason}
    log.error("job %s cannot continue: %s %s", job_id, child.name, reason)
    advice = "no live worker can: use one version of ringhaul on all hosts"
    child.ledger.fail(
        job_id,
        f"{child.name} {reason}; {advice}",
        epoch=epoch,
        by=worker_host(),
        cause=cause_of(error),
    )
    return {"unit": unit, "failed": reason}


def leave_without_transform(
    child: Child, job_id: str, unit: int, epoch: int, error: TransformError
) -> dict[str, Any]:
    """Hand back a unit of a job whose transform this host does not have; end the job once every
    live host has declined a unit for that."""
    ledger, reason = child.ledger, mask(str(error))
    hosts = {worker.host for worker in Workers(ledger.caller).alive()}
    if hosts - _hosts_without_transform(ledger, job_id) - {worker_host()}:
        log.error("unit %s of %s is left to others: %s", unit, job_id, reason)
        _decline(child, job_id, unit, epoch, reason, delay_ms=OTHERS_DELAY_MS)
        time.sleep(UNREADABLE_WAIT_S)
        return {"unit": unit, "skipped": reason}
    log.error("job %s cannot continue: %s", job_id, reason)
    ledger.fail(job_id, reason, epoch=epoch, by=worker_host(), cause=cause_of(error))
    return {"unit": unit, "failed": reason}


def _hosts_without_transform(ledger: Ledger, job_id: str) -> set[str]:
    """Return the hosts that have declined a unit of the job for the lack of a transform."""
    found = set()
    for event in History(ledger.caller).events(job_id):
        host, _, reason = event.text.partition(": ")
        if event.kind == EventKind.RELEASED and reason.startswith("transform "):
            found.add(host)
    return found


def _may_read(worker: Worker, error: Exception) -> bool:
    """Return whether a worker may read a job that this process cannot read."""
    if isinstance(error, OtherFormat):
        return worker.readable.has(error.job_format)
    # This version should be able to read such a job. Others may do better.
    return worker.version != __version__


def _decline(
    child: Child, job_id: str, unit: int, epoch: int, reason: str, *, delay_ms: int = 0
) -> None:
    """Have the unit issued again; otherwise it waits until its message counts as lost, longer each
    time. The recorded reason shows users why, and on which host, a job gets no work done."""
    with suppress(LedgerUnavailable):
        child.ledger.decline(
            job_id, unit, epoch, delay_ms=delay_ms, reason=mask(f"{worker_host()}: {reason}")
        )
