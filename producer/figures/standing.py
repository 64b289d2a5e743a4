"""What a running job waits for: a worker that is gone, or a slot that others hold.

The ledger calls such a job RUNNING, as does a job whose units are in progress. To people they are
different things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from config.celery_config import QUEUE_LOAD
from producer.text import count_text, time_text
from ringhaul.ledger.fleet import Fleet
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.labels import QUEUE_LABEL
from tasks.private_queues import is_private

#: A unit that has waited for less is on its way: a process looks for its next message at once, but
#: a command may just be starting its workers.
WAITS_S = 5.0
#: How long a command's own workers take to start on a slow machine.
OWN_START_S = 60.0
#: Jobs named in a text.
NAMED_MAX = 2


class Condition(StrEnum):
    """Why a running job gets no work done."""

    WAITING = "waiting"  #: Its units wait for a slot; other jobs hold them.
    STALLED = "stalled"  #: No live worker takes its units.


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a running job waits for."""

    condition: Condition
    seconds: float | None  #: Seconds since then; None: not known.
    text: str  #: What it waits for and what to do about it, for people.


def standing_of(status: JobStatus, fleet: Fleet) -> Standing | None:
    """Return what a job waits for; None if it has ended, is paused, or gets work done."""
    if status.finished or status.paused or status.damage or not status.pending:
        return None
    queues = _queues(status.labels.get(QUEUE_LABEL, ""))
    if not any(set(queues) & set(worker.queues) for worker in fleet.workers):
        return _without_worker(status, queues, fleet)
    waits_ms = status.oldest_issued_ms
    if status.leased or waits_ms is None or status.now_ms - waits_ms < WAITS_S * 1000:
        return None
    others = sorted(
        name
        for name, job in fleet.jobs.items()
        if name != status.job and set(queues) & set(_queues(job.queue))
    )
    if not others:
        return None  # the queue's messages may be lost: the sweep finds them
    seconds = (status.now_ms - waits_ms) / 1000
    text = f"waits for a slot for {time_text(seconds)}, behind {_named(others)}"
    return Standing(condition=Condition.WAITING, seconds=seconds, text=text)


def no_worker_text(fleet: Fleet) -> str:
    """Return that no worker is alive, since when, and what to do; empty if there are any."""
    if fleet.workers:
        return ""
    seconds = _dead_for_s(fleet)
    since = "is alive" if seconds is None else f"has been alive for {time_text(seconds)}"
    return f"no worker {since}: start one with `ringhaul worker`"


def _without_worker(status: JobStatus, queues: Sequence[str], fleet: Fleet) -> Standing | None:
    if any(map(is_private, queues)):
        if (status.now_ms - max(status.created_ms, status.progress_ms or 0)) < OWN_START_S * 1000:
            return None
        text = (
            "the command that worked on it is gone: continue it with "
            f"`ringhaul resume {status.job}`"
        )
        return Standing(condition=Condition.STALLED, seconds=status.still_s, text=text)
    if fleet.workers:
        text = f"no live worker takes units from {queues[-1]}: see `ringhaul doctor`"
        return Standing(condition=Condition.STALLED, seconds=status.still_s, text=text)
    return Standing(
        condition=Condition.STALLED, seconds=_dead_for_s(fleet), text=no_worker_text(fleet)
    )


def _dead_for_s(fleet: Fleet) -> float | None:
    """Return for how long no worker has been alive; None: unknown."""
    if fleet.last_alive_ms is None:
        return None
    return max(fleet.now_ms - fleet.last_alive_ms, 0) / 1000


def _queues(label: str) -> Sequence[str]:
    return (label or QUEUE_LOAD).split(",")


def _named(jobs: Sequence[str]) -> str:
    more = len(jobs) - NAMED_MAX
    names = ", ".join(jobs[:NAMED_MAX])
    return f"{names} and {count_text(more, 'other job')}" if more > 0 else names
