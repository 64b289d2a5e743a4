"""A snapshot of the living workers and of the jobs that need them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.pace import TURNS_ENOUGH, Limits, Pace
from ringhaul.ledger.workers import Worker, unpack_worker


class OpenJob(NamedTuple):
    """A job that runs and is not paused."""

    queue: str  #: The job's label; empty: none.
    priority: str
    units: int  #: Neither done nor quarantined.
    limits: Limits
    #: Units in progress, how far they wait for each other at the rate limit, in draws, and how many
    #: are enough to reach it (see `turns.lua`); all are 0 for a job that was never limited.
    running: int = 0
    turns: float = 0.0
    enough: int = 0

    @property
    def held(self) -> bool:
        """Whether its rate limit, not the workers, decides how fast the job is."""
        return self._is_rated and self.turns >= TURNS_ENOUGH

    @property
    def useful(self) -> int:
        """The most units worth having out: more would only wait for the rate limit. A job begins
        with one, and doubles them while it does not reach its limit."""
        if not self._is_rated:
            return self.units
        wanted = self.enough if self.held else 2 * self.running
        return min(self.units, max(1, wanted))

    @property
    def _is_rated(self) -> bool:
        return bool(self.limits.rows_per_s or self.limits.bytes_per_s)


class Fleet(NamedTuple):
    """A snapshot of workers and jobs."""

    workers: Sequence[Worker]  #: Living workers.
    jobs: dict[str, OpenJob]
    now_ms: int = 0  #: The server's clock at the snapshot.
    #: Until when the last worker counted as alive, if all are dead; None: a worker is alive, there
    #: never was any, or the last worker was stopped.
    last_alive_ms: int | None = None


def look_at_fleet(caller: Caller) -> Fleet:
    """Return the snapshot. Raises as `Caller.script` does."""
    found = _fleet(caller.reading_script("fleet", keys.RUNNING, *_KEYS, ""))
    if found.workers:
        return found
    # A worker that did not stop, but died, stays listed until another has a heartbeat.
    last = caller.command("ZREVRANGE", keys.WORKERS, 0, 0, "WITHSCORES")
    return found._replace(last_alive_ms=int(last[0][1])) if last else found


def look_at_slots(caller: Caller) -> Fleet:
    """Return the snapshot, with one nameless worker for all workers of the same queues.

    The cost does not depend on the number of workers. Their slots may be a second old, except for
    workers that have come or left. Raises as `Caller.script` does.
    """
    return _fleet(caller.script("fleet", keys.RUNNING, *_KEYS, "1"))


_KEYS = (keys.META_PATTERN, keys.WORKERS, keys.SLOTS)


def _fleet(answer: Sequence[Any]) -> Fleet:
    now_ms, alive, *jobs = answer
    return Fleet(
        [unpack_worker(member.decode()) for member in alive],
        {
            job.decode(): OpenJob(
                queue.decode(),
                priority.decode(),
                units,
                Pace.unpack(pace).at(now_ms),
                running,
                turns / 1000,
                enough,
            )
            for job, queue, priority, units, pace, running, turns, enough in jobs
        },
        now_ms,
    )
