"""Publish what a finished job leaves behind: the manifest of an unload, the result of a count."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import sleep
from typing import TYPE_CHECKING, Any

from producer.report.next_command import next_command
from ringhaul.errors import LedgerUnavailable, OutputUnusable

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger
    from ringhaul.ledger.reading import JobStatus
    from ringhaul.output.job import ResultOutput
    from ringhaul.scan.job import ReadJob


#: How long one may write before others do: a folder of many files is looked through in it.
WRITE_MS = 60_000
#: How long the command of a job has to see its end and write, before `status -f` does in its place:
#: one that lives looks several times a second.
LEAVE_MS = 3_000
_ASK_EVERY_MS = 200


def publish_end(
    ledger: Ledger,
    status: JobStatus,
    result: ResultOutput | None = None,
    *,
    again: bool = False,
) -> None:
    """Write the manifest of an unload, a lookup or an exec that wrote files and is over; print the
    result of a count or a query that is complete to `result`, or else to the job's own place.

    Nothing for other jobs. What was written once is left alone, unless `again`: somebody may have
    taken it away since, or put another one in its place. A result that goes elsewhere than its job
    has it, or to standard output, is printed each time. Raises `OutputUnusable` where the files
    are not to be seen, or the result cannot be written.
    """
    job = _published_job(ledger, status)
    if job is None:
        return
    output = (result or job.result_output) if job.kind.has_result else None
    if output is not None and _goes_elsewhere(output, job.result_output):
        _write(ledger, status, job, output)
        return  # the job's own place still waits for it
    if again or (output is not None and not output.path):
        _write(ledger, status, job, output)
        ledger.note_published(status.job)
    else:
        _write_once(ledger, status, job, output)


def _goes_elsewhere(output: ResultOutput, own: ResultOutput) -> bool:
    """Whether the job's own place still waits for the result after it went to `output`."""
    return output.path != own.path or bool(output.path and output.form != own.form)


def publish_watched(ledger: Ledger, status: JobStatus, say: Callable[[str], None]) -> None:
    """The same for `status -f`, whose standard output is not for a result: one that goes there is
    left to `resume`, and `say` tells of it.

    The command of the job comes first, if it is there still.
    """
    job = _published_job(ledger, status)
    if job is None:
        return
    if not job.kind.has_result:
        _write_once(ledger, status, job, None, leave_ms=LEAVE_MS)
    elif job.result_output.path:
        if _write_once(ledger, status, job, job.result_output, leave_ms=LEAVE_MS):
            say(f"the result is in {job.result_output.path}")
    elif not status.published:
        say(f"`{next_command(f'resume {status.job}')}` prints the result")


def _write_once(
    ledger: Ledger, status: JobStatus, job: Any, output: ResultOutput | None, leave_ms: int = 0
) -> bool:
    """Write, unless somebody else has or does; whether this did."""
    from ringhaul.ledger.ledger import new_token

    token = new_token()
    while wait_ms := ledger.may_publish(status.job, token, lease_ms=WRITE_MS, leave_ms=leave_ms):
        if wait_ms < 0:
            return False
        sleep(min(wait_ms, _ASK_EVERY_MS) / 1000)
    try:
        _write(ledger, status, job, output)
    except BaseException:
        with suppress(LedgerUnavailable):  # the lease ends by itself
            ledger.not_published(status.job, token)
        raise
    ledger.note_published(status.job)
    return True


def _write(ledger: Ledger, status: JobStatus, job: Any, output: ResultOutput | None) -> None:
    """`output`: of the result, if the job has one. Raises `JobDamaged` where Redis lost part of the
    job: a manifest or a result of what is left would look whole."""
    ledger.check(status.job)
    if output is not None:
        _print_result(ledger, status.job, job, output)
    elif job.kind == "unload":
        from ringhaul.scan.finish import publish_manifest

        publish_manifest(ledger, status.job)
    else:
        from ringhaul.statements.finish import publish_ask_manifest

        publish_ask_manifest(ledger, status)


def _published_job(ledger: Ledger, status: JobStatus) -> Any:
    """The job, if it is over and a manifest or a result of it is to be published; or None."""
    from ringhaul.ledger.kinds import JobKind
    from ringhaul.ledger.states import JobState

    done = status.state in (JobState.COMPLETE, JobState.PARTIAL)
    if not done or JobKind.of_labels(status.labels).is_load:
        return None
    from tasks.kinds import job_of

    job: Any = job_of(ledger.job_spec(status.job))
    return job if job.publishes and not job.streams_rows else None


def _print_result(ledger: Ledger, job_id: str, job: ReadJob, output: ResultOutput) -> None:
    from producer.report.result_table import print_result
    from ringhaul.ledger.keys import JOB_TTL_S
    from ringhaul.scan.fold import fold_job, result_types
    from ringhaul.scan.spill import forget_old

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
