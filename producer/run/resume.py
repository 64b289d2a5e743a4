"""Resume a job of any kind: only its missing units run, with the original options and timestamps.

If the job is still running, its command was killed or another command follows it: then its sources
are split further and it is followed. Two commands that split the same job add the same units.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from producer.report.reporter import Shown, close_job
from producer.request.conflicts import refuse_embedded_detach, refuse_workers_of_others
from producer.request.options import ResumeOptions
from producer.request.result_output import check_result_output, result_output
from producer.request.settings import connection_flags, settle
from producer.run.feed import Feeder
from producer.run.finish import publish_end
from producer.run.follow import follow_job, leave_job
from producer.run.gone import reporting_lost_job
from producer.run.spool_cleanup import drop_if_done
from producer.services.embedded import enter_broker
from producer.services.ledger import on_behalf_of
from producer.services.start import own_worker
from producer.text import count_text
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.errors import UsageError
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.reading import JobOver
from ringhaul.ledger.states import RESUMABLE, JobState
from ringhaul.output.job import ResultOutput
from ringhaul.scan.job import ReadJob
from ringhaul.sources.files import check_unchanged
from tasks.command_line import spelled_as
from tasks.connect import cluster_config, open_ledger
from tasks.kinds import Job, read_job


def run_resume(options: ResumeOptions) -> int:
    """Run `ringhaul resume`, or a command with the `--job-id` of an existing job; return the exit
    code."""
    flags = connection_flags(options) | {"worker.concurrency": options.workers}
    loaded = settle(flags, options.config_file)
    refuse_embedded_detach(loaded, options)
    refuse_workers_of_others(loaded, options)
    with ExitStack() as stack:
        loaded, broker = enter_broker(stack, loaded)
        settings = loaded.settings
        ledger = open_ledger(settings)
        job = read_job(ledger, options.job)
        stack.enter_context(reporting_lost_job(options.job, job))
        stack.enter_context(spelled_as(job.kind))
        limit = _check_options(job, options)
        result = _result_of(job, options)
        status = ledger.status(options.job)
        if _is_published_again(job, status):
            return _publish_again(ledger, status, job, options, result)
        _check_resumable(job, status)
        close_session(open_session(cluster_config(settings)))
        epoch = resumed_epoch(ledger, status, limit)
        worker = None
        if broker is not None:
            worker = stack.enter_context(own_worker(loaded, options.job))
        feeder = feeder_of(ledger, job, options.job, epoch)
        shown = Shown.from_options(options)
        label = f" {job.label}" if job.label else ""
        done = f"{count_text(status.done, 'unit')} done already"
        shown.say(f"{options.job}  resume {job.kind}{label}   {done}")
        if options.detach:
            return leave_job(ledger, options.job, shown, feeder)
        code = follow_job(
            ledger,
            options.job,
            shown,
            on_end=partial(publish_end, ledger, result=result),
            feeder=feeder,
            broker=broker,
            worker=worker,
            on_interrupt=options.interrupt_with(own_workers=broker is not None),
        )
        drop_input(ledger, settings.state_dir, options.job, job, code)
    return code


def feeder_of(ledger: Ledger, job: Job, job_id: str, epoch: int) -> Feeder | None:
    """Start a feeder that appends the missing units, and return it; None if all units are there."""
    if job.input is None or ledger.status(job_id).sealed:
        return None
    feeder = Feeder(ledger, job_id, epoch, job.input)
    feeder.start()
    return feeder


def drop_input(ledger: Ledger, state_dir: Path, job_id: str, job: Job, code: int) -> None:
    """Remove standard input that was spooled for a job, if no later command needs it."""
    if job.input is not None:
        drop_if_done(ledger, state_dir, job_id, job.input, code, resumable=job.resumable)


def resumed_epoch(ledger: Ledger, status: JobStatus, limit: ErrorLimit | None) -> int:
    """Resume the job unless it is running; return its epoch."""
    if status.state is not JobState.RUNNING:
        return ledger.resume(status.job, error_limit=limit, by=on_behalf_of())
    if limit is not None:
        raise UsageError(
            f"job {status.job} is running: --max-errors can be changed when it has stopped"
        )
    return status.epoch


def _check_options(job: Job, options: ResumeOptions) -> ErrorLimit | None:
    """Return the new limit of rejects. Raises `UsageError` for options that this kind of job has no
    use for, before anything else is checked."""
    placed = (options.output, options.result_format) != (None, None)
    if placed and not (isinstance(job, ReadJob) and job.has_result):
        raise UsageError(
            f"-o and --format are for the result of a count or a query: {options.job} has none"
        )
    if not options.max_errors:
        return None
    if not job.takes_error_limit:
        raise UsageError(
            f"--max-errors is for loads, verifications and transforms: rejects never stop "
            f"{job.kind} job {options.job}"
        )
    return ErrorLimit.parse(options.max_errors)


def _is_published_again(job: Job, status: JobStatus) -> bool:
    """Return whether the job is complete, and its command may have ended before it wrote the
    manifest or the result."""
    complete = status.state in (JobState.COMPLETE, JobState.PARTIAL)
    return complete and job.publishes and not job.streams_rows


def _check_resumable(job: Job, status: JobStatus) -> None:
    """Raise `JobOver` or `UsageError` for a job that no command can continue."""
    if not job.repeatable and job.kind.is_load:
        raise JobOver(
            f"{status.job} writes lists at exact times, so no unit may run twice, and it is not "
            "known which rows of an interrupted unit were written: delete its rows and load them "
            "again"
        )
    if not job.repeatable:
        raise JobOver(
            f"{status.job} runs a statement that must not run twice, and it is not known for which "
            "values of an interrupted unit it ran: run the command again with the values that are "
            "left"
        )
    if job.streams_rows:
        raise UsageError(
            f"job {status.job} wrote to the standard output of a command that has ended: run the "
            "command again"
        )
    refuse_over(status)
    if job.input is None and not status.sealed:
        raise UsageError(
            f"job {status.job} was interrupted before all its units existed: run the command again"
        )
    for source in job.input.sources if job.input is not None else ():
        check_unchanged(source.file)


def refuse_over(status: JobStatus) -> None:
    """Raise `JobOver` for a job that has ended for good. Call this before its sources are checked:
    they may be gone by then."""
    if status.state is not JobState.RUNNING and status.state not in RESUMABLE:
        raise JobOver(f"job {status.job} cannot be resumed: it is {status.state}")


def _result_of(job: Job, options: ResumeOptions) -> ResultOutput | None:
    """Return where the result of a count or a query goes: as its job says, unless the options say
    otherwise. None for other jobs."""
    if not (isinstance(job, ReadJob) and job.has_result):
        return None
    output = result_output(options, job.result_output)
    try:
        check_result_output(output, options)
    except UsageError as error:
        if options.output is not None or not output.path:
            raise
        raise UsageError(f"{error}; the job was made with it: name another with -o FILE") from error
    return output


def _publish_again(
    ledger: Ledger,
    status: JobStatus,
    job: Job,
    options: ResumeOptions,
    result: ResultOutput | None,
) -> int:
    """Write the manifest, the one file or the result of a complete job once more; return the exit
    code."""
    publish_end(ledger, status, result, again=True)
    shown = Shown.from_options(options)
    if result is None or result.path:
        one_file = isinstance(job, ReadJob) and job.output is not None and job.output.file
        rows = f"rows are in {one_file}" if one_file else "manifest is written"
        written = rows if result is None else f"result is in {result.path}"
        shown.say(f"{status.job} is complete; its {written}")
    return close_job(ledger, status.job, shown)
