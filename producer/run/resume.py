"""Resume a job of any kind: only its missing units run, with the original options and timestamps.

If the job is still running, its command was killed or another command follows it: then its sources
are split further and it is followed. Two commands that split the same job add the same units.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from config.settings import Loaded
from producer.options.control import ResumeOptions
from producer.options.job import Following
from producer.report.reporter import Shown, close_job
from producer.request.conflicts import refuse_embedded_detach, refuse_workers_of_others
from producer.request.result_output import check_result_output, result_output
from producer.request.settings import connection_flags, settle
from producer.run.finish import PublishedEnd, own_result, publish_end
from producer.run.follow import Followed
from producer.run.job import JobRun
from producer.run.lost_job import reporting_lost_job
from producer.services.embedded import EmbeddedBroker, enter_broker
from producer.services.ledger import on_behalf_of
from producer.services.start import own_worker
from producer.text import count_text
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.errors import UsageError
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import ClosingStep
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.reading import JobOver
from ringhaul.ledger.states import RESUMABLE, JobState
from ringhaul.output.job import ResultOutput
from ringhaul.sources.files import check_unchanged
from tasks.cluster_settings import cluster_config
from tasks.command_line import spelled_as
from tasks.connect import open_ledger
from tasks.kinds import Job, is_read_job, read_job


@dataclass(frozen=True, kw_only=True)
class ExistingJob:
    """A job that was created before, and what this command has open for it."""

    job_id: str
    job: Job
    ledger: Ledger
    loaded: Loaded  #: with the embedded broker, if there is one
    broker: EmbeddedBroker | None

    def lead(
        self,
        stack: ExitStack,
        options: Following,
        epoch: int,
        *,
        detach: bool = False,
        result: ResultOutput | None = None,
        headline: str = "",
    ) -> int:
        """Append the units that are missing, and lead the job to its end; return the exit code.

        With an embedded broker, this command starts workers, which `stack` ends. `result`: where
        the result of a count or a query goes; None: where the job says.
        """
        worker = None
        if self.broker is not None:
            worker = stack.enter_context(own_worker(self.loaded, self.job_id))
        shown = Shown.from_options(options)
        run = JobRun(
            job=self.job,
            followed=Followed(
                job_id=self.job_id,
                ledger=self.ledger,
                shown=shown,
                ending=PublishedEnd(self.job, result),
                broker=self.broker,
                worker=worker,
                on_interrupt=options.interrupt_with(own_workers=worker is not None),
            ),
            state_dir=self.loaded.settings.state_dir,
            detach=detach,
        )
        feeder = None if self.ledger.status(self.job_id).sealed else run.feed(epoch)
        if headline:
            shown.say(headline)
        return run.lead(feeder)


def open_job(stack: ExitStack, loaded: Loaded, job_id: str) -> ExistingJob:
    """Open the ledger, with an embedded broker if none is configured, and read a job; `stack` ends
    the broker, and reports the job if it is lost.

    Raises `JobMissing` and `JobDamaged`.
    """
    loaded, broker = enter_broker(stack, loaded)
    ledger = open_ledger(loaded.settings)
    job = read_job(ledger, job_id)
    stack.enter_context(reporting_lost_job(job_id, job))
    return ExistingJob(job_id=job_id, job=job, ledger=ledger, loaded=loaded, broker=broker)


def run_resume(options: ResumeOptions) -> int:
    """Run `ringhaul resume`, or a command with the `--job-id` of an existing job; return the exit
    code."""
    flags = connection_flags(options) | {"worker.concurrency": options.workers}
    loaded = settle(flags, options.config_file)
    refuse_embedded_detach(loaded, options)
    refuse_workers_of_others(loaded, options)
    with ExitStack() as stack:
        existing = open_job(stack, loaded, options.job)
        ledger, job = existing.ledger, existing.job
        stack.enter_context(spelled_as(job.kind))
        limit = _check_options(job, options)
        result = _result_of(job, options)
        status = ledger.status(options.job)
        if _is_published_again(job, status):
            return _publish_again(ledger, status, job, options, result)
        _check_resumable(job, status)
        close_session(open_session(cluster_config(existing.loaded.settings)))
        epoch = resumed_epoch(ledger, status, limit)
        label = f" {job.label}" if job.label else ""
        done = f"{count_text(status.done, 'unit')} done already"
        return existing.lead(
            stack,
            options,
            epoch,
            detach=options.detach,
            result=result,
            headline=f"{options.job}  resume {job.kind}{label}   {done}",
        )


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
    if placed and own_result(job) is None:
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
    return complete and job.closing is not ClosingStep.NOTHING


def _check_resumable(job: Job, status: JobStatus) -> None:
    """Raise `JobOver` or `UsageError` for a job that no command can continue."""
    if not job.repeatable:
        raise JobOver(f"{status.job} {job.once_advice()}")
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
    own = own_result(job)
    if own is None:
        return None
    output = result_output(options, own)
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
    """Write the manifest, the single file or the result of a complete job once more; return the
    exit code."""
    publish_end(ledger, status, result, again=True)
    shown = Shown.from_options(options)
    if result is None or result.path:
        one_file = is_read_job(job) and job.output is not None and job.output.file
        rows = f"rows are in {one_file}" if one_file else "manifest is written"
        written = rows if result is None else f"result is in {result.path}"
        shown.say(f"{status.job} is complete; its {written}")
    return close_job(ledger, status.job, shown)
