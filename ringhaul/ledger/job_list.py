"""Read the heads of all jobs at once: what a list needs to filter and sort thousands of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.forget import forget_gone
from ringhaul.ledger.labels import KIND_LABEL
from ringhaul.ledger.states import JobState

#: Heads fetched by one pipeline: some 10 ms of the server's time.
_HEADS_PER_READ = 500
_FIELDS = ("state", "paused_ms", KIND_LABEL, "table", "created_ms", "finished_ms", "epoch")


class JobHead(NamedTuple):
    """What a list of jobs needs to know of a job that it does not show."""

    job: str
    state: str  #: As `JobStatus.state_name`, but damage is not looked for; empty: unreadable.
    kind: str
    table: str
    created_ms: int
    finished_ms: int | None
    epoch: int

    @property
    def ended(self) -> bool:
        """Whether the job neither runs nor is paused."""
        return self.state not in (JobState.RUNNING.value, "PAUSED")


class JobNames(NamedTuple):
    """The jobs that the ledger lists."""

    created: dict[str, int]  #: job -> ms of its creation, the newest first
    unended: frozenset[str]  #: Those that run or are paused; some may have ended just now.


def job_names(caller: Caller, limit: int) -> JobNames:
    """Return the names of the newest `limit` jobs, and which jobs run. Raises as `Caller`."""
    forget_gone(caller, keys.JOBS)
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
    while chosen := list(islice(names, _HEADS_PER_READ)):
        for job, values in zip(chosen, caller.insist(lambda: _read(caller, chosen)), strict=True):
            head = _head(job, values)
            if head is not None:
                yield head


def _read(caller: Caller, jobs: Sequence[str]) -> list[Any]:
    pipeline = caller.client.pipeline(transaction=False)
    for job in jobs:
        pipeline.hmget(keys.job_key(job, "meta"), *_FIELDS)
    found: list[Any] = pipeline.execute(raise_on_error=False)
    for values in found:
        if isinstance(values, Exception) and not str(values).startswith("WRONGTYPE"):
            raise values
    return found


def _head(job: str, values: Any) -> JobHead | None:
    """Return None for a job whose keys expired; one whose key has another type has no state."""
    if isinstance(values, Exception):
        return JobHead(job, "", "", "", 0, None, 0)
    if not any(values):
        return None
    state, paused_ms, kind, table, created_ms, finished_ms, epoch = (
        (value or b"").decode(errors="replace") for value in values
    )
    try:
        return JobHead(
            job,
            "PAUSED" if paused_ms and state == JobState.RUNNING.value else state,
            kind,
            table,
            int(created_ms or 0),
            int(finished_ms) if finished_ms else None,
            int(epoch or 0),
        )
    except ValueError:
        return JobHead(job, "", kind, table, 0, None, 0)
