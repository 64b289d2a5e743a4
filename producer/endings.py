"""What a job needs at its end, by whoever follows it to there: its manifest, or its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from producer.hints import next_command
from ringhaul.errors import OutputUnusable

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger
    from ringhaul.ledger.reading import JobStatus
    from ringhaul.read.job import ReadJob, ResultOutput


def publish_end(ledger: Ledger, status: JobStatus, result: ResultOutput | None = None) -> None:
    """Write the manifest of an unload, a lookup or an exec that wrote files and is over; print the
    result of a count or a query that is complete to `result`, or else where its job was told.

    Nothing for other jobs. Repeating it writes the same. Raises `OutputUnusable` where the files
    are not to be seen, or the result cannot be written.
    """
    job = _published_job(ledger, status)
    if job is None:
        return
    if _has_result(job):
        output = result or job.result_output
        _print_result(ledger, status.job, job, output)
        if output.path != job.result_output.path:
            return  # what the job was told is still to be done
    elif job.kind == "unload":
        from ringhaul.read.finish import publish_manifest

        publish_manifest(ledger, status.job)
    else:
        from ringhaul.read.ask_finish import publish_ask_manifest

        publish_ask_manifest(ledger, status)
    ledger.note_published(status.job)


def publish_watched(ledger: Ledger, status: JobStatus, say: Callable[[str], None]) -> None:
    """The same for `status -f`, whose standard output is not for a result: one that goes there is
    left to `resume`, and `say` tells of it.

    What was written once is left alone: somebody may have taken it away since, or put another one
    in its place.
    """
    job = _published_job(ledger, status)
    if job is None or status.published:
        return
    if not _has_result(job):
        publish_end(ledger, status)
    elif job.result_output.path:
        publish_end(ledger, status)
        say(f"the result is in {job.result_output.path}")
    else:
        say(f"`{next_command(f'resume {status.job}')}` prints the result")


def _published_job(ledger: Ledger, status: JobStatus) -> Any:
    """The `ReadJob` or `AskJob`, if it is over and something of it is to be published; or None."""
    from ringhaul.ledger.states import JobState
    from tasks.publish import KIND_LABEL

    done = status.state in (JobState.COMPLETE, JobState.PARTIAL)
    if not done or status.labels.get(KIND_LABEL, "load") == "load":
        return None
    from tasks.kinds import job_of

    job: Any = job_of(ledger.job_spec(status.job))
    if _has_result(job):
        return job
    return None if job.output is None or job.streams else job


def _has_result(job: Any) -> bool:
    from ringhaul.read.job import RESULT_KINDS

    return job.kind in RESULT_KINDS


def _print_result(ledger: Ledger, job_id: str, job: ReadJob, output: ResultOutput) -> None:
    from producer.result_table import print_result
    from ringhaul.ledger.keys import JOB_TTL_S
    from ringhaul.read.fold import fold_job, result_types
    from ringhaul.read.spill import forget_old

    table = fold_job(ledger, job_id, job)
    try:
        print_result(table, result_types(job), output.form, output.path or None)
    except OutputUnusable as error:
        resume = next_command(f"resume {job_id}")
        raise OutputUnusable(
            f"{error}; `{resume}` prints it again, with `-o FILE` elsewhere"
        ) from error
    # The files of this job stay as long as the ledger remembers it: those of older ones go.
    forget_old(job.spill, JOB_TTL_S, lambda name: _is_known(ledger, name))


def _is_known(ledger: Ledger, job_id: str) -> bool:
    from ringhaul.ledger.reading import JobMissing

    try:
        ledger.status(job_id)
    except JobMissing:
        return False
    return True
