"""Who is there to work, and which jobs want to be worked on, at one moment."""

from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.pace import Limits, Pace
from ringhaul.ledger.workers import Worker, unpack_worker


class OpenJob(NamedTuple):
    """A job that runs and is not paused."""

    queue: str  #: Its label; empty: none.
    priority: str
    units: int  #: Neither done nor given up.
    limits: Limits


class Fleet(NamedTuple):
    """One look at workers and jobs."""

    workers: Sequence[Worker]  #: That are alive.
    jobs: dict[str, OpenJob]


def look_at_fleet(caller: Caller) -> Fleet:
    """Look. Raises as `Caller.script` does."""
    now_ms, alive, *jobs = caller.script("fleet", keys.RUNNING, keys.META_PATTERN, keys.WORKERS)
    return Fleet(
        [unpack_worker(member.decode()) for member in alive],
        {
            job.decode(): OpenJob(
                queue.decode(), priority.decode(), units, Pace.unpack(pace).at(now_ms)
            )
            for job, queue, priority, units, pace in jobs
        },
    )
