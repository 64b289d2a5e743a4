"""Errors for a job that Redis lost while a command created or followed it.

"There is no such job" is for a mistyped id. A command that has seen the job reports more: its
workers may have written rows or files, which remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ringhaul.errors import EXIT_FATAL, Terminal
from ringhaul.ledger.reading import JobMissing

if TYPE_CHECKING:
    from tasks.kinds import Job


class JobGone(Terminal):
    """Redis lost a job while it ran."""

    exit_code = EXIT_FATAL


@contextmanager
def reporting_lost_job(job_id: str, job: Job) -> Iterator[None]:
    """Turn `JobMissing` for this job into `JobGone`, which says what the job may have written."""
    try:
        yield
    except JobMissing as error:
        if error.job != job_id:
            raise
        raise JobGone(lost_words(job_id, job)) from error


def lost_words(job_id: str, job: Job) -> str:
    """Return the message for a lost job: what it may have written, and how to run it again."""
    return (
        f"job {job_id} is gone from Redis, which was flushed, restarted without its data, or "
        f"evicted keys (`ringhaul doctor` looks at its settings). {job.lost_advice()}"
    )
