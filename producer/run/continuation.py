"""Continue the job of a `--job-id` that exists: follow it, run what it lacks, or report its end."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from dataclasses import fields, replace

from config.settings import Loaded
from producer.options.connection import Connection
from producer.options.control import ResumeOptions
from producer.options.job import Following, JobOptions
from producer.options.output import ResultPlace, RowsOutput
from producer.report.reporter import Shown, close_job
from producer.request.conflicts import refuse_embedded_detach, refuse_workers_of_others
from producer.request.fingerprint import FINGERPRINT_LABEL, differences
from producer.request.output import STDOUT
from producer.request.result_output import check_result_output, result_output
from producer.request.settings import connection_flags, settle
from producer.run.finish import publish_end
from producer.run.resume import open_job, run_resume
from producer.services.ledger import ledger_of, on_behalf_of
from producer.text import time_text
from ringhaul.causes import INTERRUPTED
from ringhaul.errors import EXIT_CANCELLED, UsageError
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing, JobOver
from ringhaul.ledger.states import SETTLED, JobState
from tasks.kinds import read_job


def continue_job(options: JobOptions, kind: JobKind) -> tuple[int | None, bool]:
    """Continue the job of this id. Return the exit code, or None if the command itself has to run;
    and whether the job then exists already, with some of its units missing."""

    flags = connection_flags(options) | {"worker.concurrency": options.workers}
    loaded = settle(flags, options.config_file)
    job_id = options.job_id
    assert job_id is not None
    if not (isinstance(options, RowsOutput) and options.output == STDOUT):
        refuse_workers_of_others(loaded, options)
    if isinstance(options, ResultPlace):  # the result is printed whatever the job's state
        check_result_output(result_output(options), options)
    with ledger_of(loaded) as ledger:
        try:
            status = ledger.status(job_id)
        except JobMissing:
            return None, False
        found = JobKind.of_labels(status.labels)
        if found is not kind:
            raise UsageError(f"--job-id {job_id}: the job with this id is a {found}")
        _refuse_other(options, status)
        running = status.state is JobState.RUNNING
        interrupted = _was_interrupted(status)
        if interrupted and not status.sealed and kind.scans:
            ledger.resume(job_id, by=on_behalf_of())
            return None, True
        if running and not status.sealed and kind.scans:
            return None, True
        unfinished = running or interrupted
        if not unfinished and status.state not in (JobState.FAILED, JobState.QUARANTINED):
            _refuse_gone_rows(ledger, status)
            return report_end(options, ledger, status), False
    if running and kind.runs_statements:
        return _follow_statements(options, loaded, job_id), False
    return _resume(options, loaded, job_id), False


def _was_interrupted(status: JobStatus) -> bool:
    """Return whether the job ended only because its command did. A job that a user cancelled stays
    cancelled."""

    return status.state is JobState.CANCELLED and status.cause == INTERRUPTED


def _refuse_other(options: JobOptions, status: JobStatus) -> None:
    """Raise `UsageError` if the job of this id does something else: its outcome would be reported
    as this request's."""

    was = status.labels.get(FINGERPRINT_LABEL)
    found = differences(was, options.fingerprint) if was else []
    if found:
        raise UsageError(
            f"--job-id {status.job}: the job with this id does something else "
            f"({'; '.join(found)}); give another id"
        )


def _refuse_gone_rows(ledger: Ledger, status: JobStatus) -> None:
    """Raise `UsageError` for a complete job that wrote its rows to the standard output of an
    earlier command: reporting success here would leave this command's output empty."""

    complete = status.state in (JobState.COMPLETE, JobState.PARTIAL)
    if not complete or not JobKind.of_labels(status.labels).writes_rows:
        return
    if read_job(ledger, status.job).streams_rows:
        raise UsageError(
            f"--job-id {status.job}: the rows of this job went to the standard output of the "
            "command that started it; give another id, or a folder with -o"
        )


def _resume(options: JobOptions, loaded: Loaded, job_id: str) -> int:
    """Run what is missing of a job, or follow it while others do; return the exit code.

    A killed command may still be ending, and take the job with it while this command follows: then
    this command also runs the rest of the job.
    """

    shared = (*fields(Connection), *fields(Following))
    resumed = ResumeOptions(job=job_id, **{one.name: getattr(options, one.name) for one in shared})
    if isinstance(options, ResultPlace):
        # This command decides where the result goes, not the command that created the job.
        place = options.output or STDOUT
        resumed = replace(resumed, output=place, result_format=options.result_format)
    while True:
        try:
            code = run_resume(resumed)
        except JobOver:  # it ended a moment ago, or must not run twice
            with ledger_of(loaded) as ledger:
                status = ledger.status(job_id)
                if status.state not in (*SETTLED, JobState.FAILED, JobState.CANCELLED):
                    raise
                return report_end(options, ledger, status)
        if code != EXIT_CANCELLED:
            return code
        with ledger_of(loaded) as ledger:
            if not _was_interrupted(ledger.status(job_id)):
                return code


def report_end(options: JobOptions, ledger: Ledger, status: JobStatus) -> int:
    """Report the end of a job as the command that followed it would have done; return the exit
    code."""

    shown = Shown.from_options(options)
    ended_ago_s = time.time() - (status.finished_ms or 0) / 1000
    shown.say(f"{status.job} ended {time_text(max(ended_ago_s, 0))} ago: nothing was run again")
    result = result_output(options) if isinstance(options, ResultPlace) else None
    with suppress(JobDamaged):  # the closing report says so
        publish_end(ledger, status, result)
    return close_job(ledger, status.job, shown)


def _follow_statements(options: JobOptions, loaded: Loaded, job_id: str) -> int:
    """Follow a running lookup or exec, even one whose statement must not run twice.

    If no broker is configured, this command starts workers: the earlier command's workers ended
    with it.
    """
    refuse_embedded_detach(loaded, options)
    refuse_workers_of_others(loaded, options)
    with ExitStack() as stack:
        existing = open_job(stack, loaded, job_id)
        status = existing.ledger.status(job_id)
        if existing.job.streams_rows:
            raise UsageError(
                f"job {job_id} wrote to the standard output of a command that has ended"
            )
        if existing.job.input is None and not status.sealed:
            existing.ledger.fail(job_id, "its command ended before all its units were created")
        return existing.lead(stack, options, status.epoch)
