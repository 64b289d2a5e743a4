"""Stand-ins for processes that only wait for their job's rate limit.

A unit of a limited job may last for minutes, nearly all of which it waits. Its process keeps the
unit, with what it has done so far; but it is not a slot that other jobs should wait for. So the
worker starts another process for each process that waits, while messages wait in its queues, and
ends it once it is not needed any more. See ADR 0046.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Protocol

log = logging.getLogger(__name__)

#: How often a worker looks.
LOOK_S = 1.0
#: A process that waits for this part of the time between two looks is held by a limit.
HELD_SHARE = 0.8
#: How long a process that stands in stays although it is not needed: starting one costs a second
#: of CPU and a session.
STAY_S = 30.0


class Pool(Protocol):
    """Celery's pool of processes."""

    def grow(self, n: int) -> None:
        """Raise the number of processes by `n`."""

    def maintain_pool(self) -> None:
        """Start the processes that are missing."""

    def shrink(self, n: int) -> None:
        """End `n` processes that have no task. Raises ValueError if fewer have none."""


class StandIns:
    """The additional processes of one worker."""

    def __init__(
        self,
        most: int,
        *,
        waits: Callable[[], Mapping[int, float]],
        messages_wait: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
          most: Processes that may stand in.
          waits: Returns for each pid the seconds it has waited for rate limits since it started.
          messages_wait: Returns whether a message waits in a queue of the worker. Raises as the
            ledger does.
        """
        self._most, self._waits, self._messages_wait = most, waits, messages_wait
        self._now = now
        self._before: Mapping[int, float] = {}
        self._looked_s, self._needed_s = now(), now()
        self.count = 0  #: Additional processes

    def look(self, pool: Pool, resize: Callable[[int], None]) -> None:
        """Start or end processes. `resize` takes by how many their number has changed, so that
        as many more or fewer messages are fetched."""
        held = self._held()
        if held > self.count and self.count < self._most and self._messages_wait():
            more = min(held, self._most) - self.count
            log.info("%d processes wait for their job's rate limit: %d stand in", held, more)
            pool.grow(more)
            pool.maintain_pool()
            resize(more)
            self.count += more
        now = self._now()
        if held >= self.count:
            self._needed_s = now
        elif now - self._needed_s >= STAY_S:
            self._end(pool, resize, self.count - held)

    def _end(self, pool: Pool, resize: Callable[[int], None], most: int) -> None:
        """End up to `most` idle processes; the next look tries again."""
        for _ in range(most):
            try:
                pool.shrink(1)
            except ValueError:
                return
            resize(-1)
            self.count -= 1

    def _held(self) -> int:
        """Return how many processes have mostly waited for a limit since the last look."""
        waits, now = self._waits(), self._now()
        least_s = HELD_SHARE * (now - self._looked_s)
        held = sum(
            waited_s - self._before[pid] >= least_s
            for pid, waited_s in waits.items()
            if pid in self._before
        )
        self._before, self._looked_s = waits, now
        return held
