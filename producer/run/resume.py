"""Resume a job: only its missing units run, with the options and timestamps it began with.

A job that runs still is one whose command was killed, or one that somebody else follows: the
splitting goes on and the job is followed. Two commands that split the same job add the same units.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from config.settings import Loaded
from producer.report.reporter import Shown, print_closing
from producer.report.summary import read_closing
from producer.request.conflicts import refuse_embedded_detach, refuse_workers_of_others
from producer.request.result_output import check_result_output, result_output
from producer.request.settings import connection_flags, is_embedded, settle
from producer.run.feed import Feeder
from producer.run.finish import publish_end
from producer.run.follow import follow_job, leave_job
from producer.run.gone import knowing
from producer.run.spool_cleanup import drop_if_done
from producer.services.embedded import EmbeddedBroker
from producer.services.start import own_worker
from producer.text import count_text
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.errors import UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.reading import JobOver, JobStatus
from ringhaul.ledger.states import RESUMABLE, JobState
from ringhaul.output.job import ResultOutput
from ringhaul.records.job import LoadJob
from ringhaul.scan.job import RESULT_KINDS, ReadJob
from ringhaul.sources.files import check_unchanged
from ringhaul.statements.job import AskJob
from tasks.connect import cluster_config, open_ledger
from tasks.kinds import job_of


def run_resume(options: Mapping[str, Any]) -> int:
    """Run `ringhaul resume`, or a command with the `--job-id` of a job that is there; the exit
    code."""
    flags = connection_flags(options) | {"worker.concurrency": options["workers"]}
    loaded = settle(flags, options["config_file"])
    embedded = is_embedded(loaded)
    refuse_embedded_detach(loaded, options)
    refuse_workers_of_others(loaded, options)
    state_dir = loaded.settings.state_dir
    job_id = options["job"]
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(state_dir)) if embedded else None
        settings = settle({}, None).settings
        ledger = open_ledger(settings)
        job = job_of(ledger.job_spec(job_id))
        stack.enter_context(knowing(job_id, job))
        has_result = isinstance(job, ReadJob) and job.kind in RESULT_KINDS
        if not has_result and (options["output"], options["result_format"]) != (None, None):
            raise UsageError(
                f"-o and --format are for the result of a count or a query: {job_id} has none"
            )
        if isinstance(job, AskJob):
            return _resume_ask(stack, loaded, options, ledger, job, broker)
        if not isinstance(job, LoadJob):
            return _resume_read(stack, loaded, options, ledger, job, broker)
        refuse_over(ledger.status(job_id))
        for source in job.sources:
            check_unchanged(source.file)
        close_session(open_session(cluster_config(settings)))
        limit = ErrorLimit.parse(options["max_errors"]) if options["max_errors"] else None
        epoch = _epoch(ledger, job_id, limit)
        worker = None
        if embedded:
            worker = stack.enter_context(own_worker(loaded, job_id))
        status = ledger.status(job_id)
        feeder = None
        if not status.sealed:
            feeder = Feeder(ledger, job_id, epoch, job)
            feeder.start()
        shown = Shown.from_options(options)
        shown.say(f"{job_id}  resume {job.kind} {job.table.name}   {_done_already(status)}")
        if options.get("detach"):
            return leave_job(ledger, job_id, shown, feeder)
        code = follow_job(
            ledger,
            job_id,
            job.total_bytes,
            shown,
            feeder=feeder,
            broker=broker,
            worker=worker,
            on_interrupt=options["on_interrupt"] or ("cancel" if embedded else "detach"),
        )
        drop_if_done(ledger, state_dir, job_id, job, code)
    return code


def _resume_read(
    stack: ExitStack,
    loaded: Loaded,
    options: Mapping[str, Any],
    ledger: Ledger,
    job: ReadJob,
    broker: EmbeddedBroker | None,
) -> int:
    """Go on with an unload, a count or a query: the units that are not done."""
    job_id = options["job"]
    if options["max_errors"] and not job.transforms:
        raise UsageError("--max-errors is of loads and transforms: reading has no rejects")
    limit = ErrorLimit.parse(options["max_errors"]) if options["max_errors"] else None
    if job.streams:
        raise UsageError(f"job {job_id} wrote to a standard output that is gone: start it anew")
    result = _result_of(job, options) if job.kind in RESULT_KINDS else None
    status = ledger.status(job_id)
    if status.state in (JobState.COMPLETE, JobState.PARTIAL):
        return _publish_again(ledger, status, options, result)
    if not status.sealed:
        raise UsageError(f"job {job_id} has not got all its units: start it anew")
    close_session(open_session(cluster_config(loaded.settings)))
    _epoch(ledger, job_id, limit)
    worker = None
    if broker is not None:
        worker = stack.enter_context(own_worker(loaded, job_id))
    shown = Shown.from_options(options)
    shown.say(f"{job_id}  resume {job.kind} {job.table.name}   {_done_already(status)}")
    if options.get("detach"):
        return leave_job(ledger, job_id, shown, None)
    return follow_job(
        ledger,
        job_id,
        0,
        shown,
        on_end=lambda status: publish_end(ledger, status, result),
        broker=broker,
        worker=worker,
        on_interrupt=options["on_interrupt"] or ("cancel" if broker else "detach"),
    )


def _result_of(job: ReadJob, options: Mapping[str, Any]) -> ResultOutput:
    """Where the result goes: as the job was told, but for what the options say."""
    output = result_output(options, job.result_output)
    try:
        check_result_output(output, options)
    except UsageError as error:
        if options["output"] is not None or not output.path:
            raise
        raise UsageError(f"{error}; so the job was told: name another with -o FILE") from error
    return output


def _publish_again(
    ledger: Ledger,
    status: JobStatus,
    options: Mapping[str, Any],
    result: ResultOutput | None = None,
) -> int:
    """Of a job that is complete: its command may have gone before it wrote manifest or result."""
    publish_end(ledger, status, result, again=True)
    shown = Shown.from_options(options)
    if result is None or result.path:
        written = "manifest is written" if result is None else f"result is in {result.path}"
        shown.say(f"{status.job} is complete; its {written}")
    closing = read_closing(ledger, status.job)
    print_closing(closing, shown)
    return closing.exit_code


def _resume_ask(
    stack: ExitStack,
    loaded: Loaded,
    options: Mapping[str, Any],
    ledger: Ledger,
    job: AskJob,
    broker: EmbeddedBroker | None,
) -> int:
    """Go on with a lookup or an exec: the units that are not done."""
    job_id = options["job"]
    if options["max_errors"]:
        raise UsageError(f"--max-errors is of loads: {job.kind} never stops for rejects")
    if not job.repeatable:
        raise JobOver(
            f"{job_id} runs a statement that must not be done twice, and nobody can tell how much "
            "of a unit that was cut short was done: start it anew with the values that are left"
        )
    status = ledger.status(job_id)
    if job.output is not None:
        if job.streams:
            raise UsageError(f"job {job_id} wrote to a standard output that is gone: start it anew")
        if status.state in (JobState.COMPLETE, JobState.PARTIAL):
            return _publish_again(ledger, status, options)
    refuse_over(status)
    if job.spans and not status.sealed:
        raise UsageError(f"job {job_id} has not got all its units: start it anew")
    for source in job.values.sources:
        check_unchanged(source.file)
    close_session(open_session(cluster_config(loaded.settings)))
    epoch = _epoch(ledger, job_id, None)
    worker = None
    if broker is not None:
        worker = stack.enter_context(own_worker(loaded, job_id))
    feeder = None
    if not ledger.status(job_id).sealed:
        feeder = Feeder(ledger, job_id, epoch, job.values)
        feeder.start()
    shown = Shown.from_options(options)
    shown.say(f"{job_id}  resume {job.kind}   {_done_already(status)}")
    code = follow_job(
        ledger,
        job_id,
        0,
        shown,
        on_end=lambda status: publish_end(ledger, status),
        feeder=feeder,
        broker=broker,
        worker=worker,
        on_interrupt=options["on_interrupt"] or ("cancel" if broker else "detach"),
    )
    drop_if_done(ledger, loaded.settings.state_dir, job_id, job.values, code)
    return code


def _done_already(status: JobStatus) -> str:
    return f"{count_text(status.done, 'unit')} done already"


def refuse_over(status: JobStatus) -> None:
    """Raise `JobOver` for a job that is over for good, before anything else that may be wrong:
    its sources may be gone by right."""
    if status.state is not JobState.RUNNING and status.state not in RESUMABLE:
        raise JobOver(f"job {status.job} cannot be resumed: it is {status.state}")


def _epoch(ledger: Ledger, job_id: str, limit: ErrorLimit | None) -> int:
    """The job's epoch, made to run if it does not."""
    status = ledger.status(job_id)
    if status.state is not JobState.RUNNING:
        return ledger.resume(job_id, error_limit=limit)
    if limit is not None:
        raise UsageError(
            f"job {job_id} is running: --max-errors can be changed when it has stopped"
        )
    return status.epoch
