"""Drop jobs from the lists that name them: jobs whose keys have expired, or a job with its keys.

Redis expires a job's own keys; lists of all jobs are cleaned up a little at a time, by whichever
process uses them.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ringhaul.ledger import keys

if TYPE_CHECKING:
    from ringhaul.ledger.connection import Caller  # redis-py: slow to import

#: Most jobs examined per call, which takes 0.2 ms of the server's time. More than a caller adds
#: until its next call, so that a list shrinks.
LOOKED_AT_MAX = 100


def forget_gone(caller: Caller, list_key: str) -> list[str]:
    """Drop jobs that no longer exist from a list of jobs (job -> ms).

    Only jobs older than the time that a job is kept are examined. Returns those dropped. Raises as
    `Caller.script` does.
    """
    dropped: list[bytes] = caller.script(
        "forget",
        list_key,
        keys.META_PATTERN,
        keys.JOB_TTL_S * 1000,
        LOOKED_AT_MAX,
        random.randrange(1 << 31),
    )
    return [job.decode() for job in dropped]


def forget_job(caller: Caller, job: str, units_count: int) -> None:
    """Remove a job at once, with its keys. It must have ended, or its command gives it up: a late
    commit finds no job. `units_count`: how many units it has. Raises as `Caller.command` does."""
    buckets = range(0, max(units_count, 1), keys.UNITS_PER_BUCKET)
    caller.command(
        "DEL",
        *(keys.job_key(job, part) for part in (*keys.SINGLE, "rate")),
        *(keys.bucket_key(job, part, unit) for part in keys.BUCKETED for unit in buckets),
    )
    caller.command("SREM", keys.RUNNING, job)
    caller.command("ZREM", keys.JOBS, job)
