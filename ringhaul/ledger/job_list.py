"""Read the heads of all jobs: what a list needs to filter and sort thousands of them.

A user who may only read can do this, so jobs whose keys have expired stay in the list of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.states import JobState

#: Heads read by one script, which takes some 2 ms of the server's time.
_HEADS_PER_SCRIPT = 500
_SEPARATOR = "\x1f"


class JobHead(NamedTuple):
    """What a list of jobs needs to know of a job that it does not show."""

    job: str
    state: str  #: As `JobStatus.state_name`, but damage is not looked for; empty: unreadable.
    created_ms: int
    finished_ms: int | None = None
    kind: str = ""
    table: str = ""

    @property
    def ended(self) -> bool:
        """Whether the job neither runs nor is paused."""
        return self.state not in (JobState.RUNNING.value, "PAUSED")


class JobNames(NamedTuple):
    """The jobs that the ledger lists."""

    created: dict[str, int]  #: job -> ms of its creation, the newest first
    unended: frozenset[str]  #: The running and paused jobs; some may have ended just now.


def job_names(caller: Caller, limit: int) -> JobNames:
    """Return the names of the newest `limit` jobs, and which jobs run. Raises as `Caller`."""
    found: Any = caller.insist(
        lambda: caller.client.zrevrange(keys.JOBS, 0, limit - 1, withscores=True)
    )
    running: set[bytes] = caller.command("SMEMBERS", keys.RUNNING)
    return JobNames(
        {name.decode(): int(created_ms) for name, created_ms in found},
        frozenset(name.decode() for name in running),
    )


def read_heads(caller: Caller, jobs: Iterable[str]) -> Iterator[JobHead]:
    """Yield the heads of those jobs that still exist. Raises as `Caller`."""
    names = iter(jobs)
    while chosen := list(islice(names, _HEADS_PER_SCRIPT)):
        found: list[bytes] = caller.reading_script("heads", keys.JOBS, keys.META_PATTERN, *chosen)
        for job, packed in zip(chosen, found, strict=True):
            if packed:
                yield _head(job, packed.decode(errors="replace"))


def _head(job: str, packed: str) -> JobHead:
    try:
        state, paused_ms, created_ms, finished_ms, kind, table = packed.split(_SEPARATOR, 5)
        return JobHead(
            job,
            "PAUSED" if paused_ms and state == JobState.RUNNING.value else state,
            int(created_ms),
            int(finished_ms) if finished_ms else None,
            kind,
            table,
        )
    except ValueError:  # its state has another type, or was written over
        return JobHead(job, "", 0)
