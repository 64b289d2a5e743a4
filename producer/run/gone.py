"""Errors for a job that Redis lost while a command created or followed it.

"There is no such job" is for a mistyped id. A command that has seen the job reports more: its
workers may have written rows or files, which remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ringhaul.errors import EXIT_FATAL, Terminal
from ringhaul.ledger.reading import JobMissing

if TYPE_CHECKING:
    from ringhaul.records.job import LoadJob


class JobGone(Terminal):
    """Redis lost a job while it ran."""

    exit_code = EXIT_FATAL


@contextmanager
def reporting_lost_job(job_id: str, job: Any) -> Iterator[None]:
    """Turn `JobMissing` for this job into `JobGone`, which says what the job may have written.

    `job`: the job's record, from `tasks.kinds.job_of`.
    """
    try:
        yield
    except JobMissing as error:
        if error.job != job_id:
            raise
        raise JobGone(gone_words(job_id, job)) from error


def gone_words(job_id: str, job: Any) -> str:
    """Return the message for a lost job: what it may have written, and how to run it again."""
    text = (
        f"job {job_id} is gone from Redis, which was flushed, restarted without its data, or "
        "evicted keys (`ringhaul doctor` looks at its settings). "
    )
    if job.kind == "load":
        return text + _load_words(job)
    if job.kind == "exec":
        return text + (
            "Its statement may have run for any of the values. Run the command again only if the "
            "statement may run twice for the same values."
        )
    if getattr(job, "output", None) is not None and not getattr(job, "streams", False):
        return text + (
            f"Nothing was written to a table. Files of the job may be in {job.output.url}, which "
            "has no manifest: remove them, and run the command again."
        )
    return text + "Nothing was written to a table: run the command again."


def _load_words(job: LoadJob) -> str:
    first = datetime.fromtimestamp(job.base_us / 1_000_000, UTC).isoformat(timespec="seconds")
    return (
        f"Rows of the job may be in {job.table.name}, with write times from {job.base_us} "
        f"({first}) on. To load again, run the same command with --timestamp {job.base_us}: "
        "records of unchanged files get the same write times, and rows that are already there do "
        "not change."
    )
