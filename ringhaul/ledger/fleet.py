"""A snapshot of the living workers and of the jobs that need them."""

from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.pace import Limits, Pace
from ringhaul.ledger.workers import Worker, unpack_worker


class OpenJob(NamedTuple):
    """A job that runs and is not paused."""

    queue: str  #: The job's label; empty: none.
    priority: str
    units: int  #: Neither done nor quarantined.
    limits: Limits


class Fleet(NamedTuple):
    """A snapshot of workers and jobs."""

    workers: Sequence[Worker]  #: Living ones.
    jobs: dict[str, OpenJob]
    now_ms: int = 0  #: The server's clock then.


def look_at_fleet(caller: Caller) -> Fleet:
    """Return the snapshot. Raises as `Caller.script` does."""
    now_ms, alive, *jobs = caller.reading_script(
        "fleet", keys.RUNNING, keys.META_PATTERN, keys.WORKERS
    )
    return Fleet(
        [unpack_worker(member.decode()) for member in alive],
        {
            job.decode(): OpenJob(
                queue.decode(), priority.decode(), units, Pace.unpack(pace).at(now_ms)
            )
            for job, queue, priority, units, pace in jobs
        },
        now_ms,
    )
