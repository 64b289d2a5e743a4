"""`--job-id`: a command that may be repeated. Where its job is there already, it goes on with it.

Whoever starts commands for others (a schedule, cron, a container that is started again) cannot know
whether the one before was killed before or after it made its job. With an id that it gives, it need
not: the second command follows the job, runs what is missing of one that failed, or tells the end
of one that is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.startup import take_sigterm
from ringhaul.errors import UsageError

if TYPE_CHECKING:
    from config.settings import Loaded
    from ringhaul.ledger.ledger import Ledger
    from ringhaul.ledger.reading import JobStatus

Command = Callable[..., int]
#: Set for a command that hands out the units of a job which another command made and left.
ADOPTED = "adopted"


def begins_job(kind: str) -> Callable[[Command], Command]:
    """`--job-id` of a command that begins a job of this kind."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**options: Any) -> int:
            from producer.request.conflicts import refuse_together
            from producer.request.fingerprint import ASKED, asked_text
            from producer.request.values import given_options

            take_sigterm()
            refuse_together(given_options())
            options[ASKED] = asked_text()
            if options["job_id"] is None:
                return command(**options)
            from ringhaul.ledger.keys import job_key
            from ringhaul.ledger.reading import JobTaken

            job_key(options["job_id"], "meta")  # refuses what is no job's id
            if options.get("dry_run"):
                return command(**options)
            code, adopted = _go_on(options, kind)
            if code is None:
                try:
                    return command(**options | {ADOPTED: adopted})
                except JobTaken:  # by a command that did the same at the same time
                    code, adopted = _go_on(options, kind)
                    if code is None:
                        raise
            return code

        option: Callable[[Command], Command] = click.option(
            "--job-id",
            metavar="ID",
            help="Of the job. If it is there already, go on with it: the command may be repeated.",
        )
        return option(run)

    return decorate


def _go_on(options: Mapping[str, Any], kind: str) -> tuple[int | None, bool]:
    """The exit code, after the job was gone on with; None: it is to be begun. And whether it is
    there, its units not all handed out."""
    from producer.request.conflicts import refuse_workers_of_others
    from producer.request.output import STDOUT
    from producer.request.result_output import check_result_output, result_output
    from producer.request.settings import connection_flags, settle
    from producer.services.ledger import reading_ledger
    from ringhaul.ledger.labels import KIND_LABEL
    from ringhaul.ledger.reading import JobMissing
    from ringhaul.ledger.states import JobState
    from ringhaul.scan.job import RESULT_KINDS

    flags = connection_flags(options) | {"worker.concurrency": options.get("workers")}
    loaded = settle(flags, options["config_file"])
    job_id = options["job_id"]
    if kind in RESULT_KINDS or options.get("output") != STDOUT:
        refuse_workers_of_others(loaded, options)
    if kind in RESULT_KINDS:  # whatever its job has come to, the result is printed
        check_result_output(result_output(options), options)
    with reading_ledger(None) as ledger:
        try:
            status = ledger.status(job_id)
        except JobMissing:
            return None, False
        found = status.labels.get(KIND_LABEL, "load")
        if found != kind:
            raise UsageError(f"--job-id {job_id}: there is a job of this id, and it is a {found}")
        _refuse_other(options, status)
        running = status.state is JobState.RUNNING
        if running and not status.sealed and kind in ("unload", "count", "query"):
            return None, True
        if not running and status.state not in (JobState.FAILED, JobState.QUARANTINED):
            _refuse_gone_rows(ledger, status)
            return _tell_end(options, ledger, status), False
    if running and kind in ("lookup", "exec"):
        return _follow_asking(options, loaded), False
    return _resume(options, kind), False


def _refuse_other(options: Mapping[str, Any], status: JobStatus) -> None:
    """Raise `UsageError` for a job of this id that is about something else: its end would be taken
    for that of what was asked for."""
    from producer.request.fingerprint import ASKED, ASKED_LABEL, differences

    was = status.labels.get(ASKED_LABEL)
    found = differences(was, options[ASKED]) if was else []
    if found:
        raise UsageError(
            f"--job-id {status.job}: the job of this id is about something else "
            f"({'; '.join(found)}); give another id"
        )


def _refuse_gone_rows(ledger: Ledger, status: JobStatus) -> None:
    """Raise `UsageError` for a job that is complete and gave its rows to the standard output of the
    command that began it: to say that it is would leave the one of this command empty."""
    from ringhaul.ledger.labels import KIND_LABEL
    from ringhaul.ledger.states import JobState
    from tasks.kinds import job_of

    complete = status.state in (JobState.COMPLETE, JobState.PARTIAL)
    if not complete or status.labels.get(KIND_LABEL) not in ("unload", "lookup", "exec"):
        return
    job: Any = job_of(ledger.job_spec(status.job))
    if job.output is not None and job.streams:
        raise UsageError(
            f"--job-id {status.job}: the rows of this job went to the standard output of the "
            "command that began it; give another id, or a folder with -o"
        )


def _resume(options: Mapping[str, Any], kind: str) -> int:
    """Run what is missing of a job, or follow it while others do."""
    from producer.request.output import STDOUT
    from producer.run.resume import run_resume
    from producer.services.ledger import reading_ledger
    from ringhaul.ledger.reading import JobOver
    from ringhaul.ledger.states import SETTLED, JobState
    from ringhaul.scan.job import RESULT_KINDS

    # This command says where the result goes, and not the one that began the job.
    told: dict[str, Any] = {"output": None, "result_format": None}
    if kind in RESULT_KINDS:
        told["output"] = options.get("output") or STDOUT
        told["result_format"] = options["result_format"]
    try:
        return run_resume({**options, **told, "job": options["job_id"], "max_errors": None})
    except JobOver:  # just now, or for good: it must not be done twice
        with reading_ledger(None) as ledger:
            status = ledger.status(options["job_id"])
            if status.state not in (*SETTLED, JobState.FAILED):
                raise
            return _tell_end(options, ledger, status)


def _tell_end(options: Mapping[str, Any], ledger: Ledger, status: JobStatus) -> int:
    """What the command that followed the job to its end would have done then."""
    from producer.report.reporter import Shown, print_closing
    from producer.report.summary import read_closing
    from producer.request.result_output import result_output
    from producer.run.finish import publish_end
    from producer.text import time_text
    from ringhaul.ledger.audit import JobDamaged
    from ringhaul.ledger.labels import KIND_LABEL
    from ringhaul.scan.job import RESULT_KINDS

    shown = Shown.from_options(options)
    ended_ago_s = time.time() - (status.finished_ms or 0) / 1000
    shown.say(f"{status.job} ended {time_text(max(ended_ago_s, 0))} ago: nothing was done again")
    has_result = status.labels.get(KIND_LABEL) in RESULT_KINDS
    with suppress(JobDamaged):  # the closing says so
        publish_end(ledger, status, result_output(options) if has_result else None)
    closing = read_closing(ledger, status.job)
    print_closing(closing, shown)
    return closing.exit_code


def _follow_asking(options: Mapping[str, Any], loaded: Loaded) -> int:
    """Follow a lookup or an exec that runs: also one whose statement must not be done twice.

    With workers of our own where there are no others: those of the command before ended with it.
    """
    from producer.report.reporter import Shown
    from producer.request.conflicts import refuse_embedded_detach, refuse_workers_of_others
    from producer.request.settings import is_embedded, settle
    from producer.run.feed import Feeder
    from producer.run.finish import publish_end
    from producer.run.follow import follow_job
    from producer.run.gone import knowing
    from producer.run.spool_cleanup import drop_if_done
    from producer.services.embedded import EmbeddedBroker
    from producer.services.start import own_worker
    from tasks.connect import open_ledger
    from tasks.kinds import job_of

    refuse_embedded_detach(loaded, options)
    refuse_workers_of_others(loaded, options)
    job_id, state_dir = options["job_id"], loaded.settings.state_dir
    broker = worker = feeder = None
    with ExitStack() as stack:
        if is_embedded(loaded):
            broker = stack.enter_context(EmbeddedBroker(state_dir))
        ledger = open_ledger(settle({}, None).settings)
        status = ledger.status(job_id)
        job: Any = job_of(ledger.job_spec(job_id))
        stack.enter_context(knowing(job_id, job))
        if job.output is not None and job.streams:
            raise UsageError(f"job {job_id} wrote to a standard output that is gone")
        if not status.sealed:
            if job.spans:
                ledger.fail(job_id, "its command ended before all its units were handed out")
            else:
                feeder = Feeder(ledger, job_id, status.epoch, job.values)
                feeder.start()
        if broker is not None:
            worker = stack.enter_context(own_worker(loaded, job_id))
        code = follow_job(
            ledger,
            job_id,
            0,
            Shown.from_options(options),
            feeder=feeder,
            broker=broker,
            worker=worker,
            on_end=lambda status: publish_end(ledger, status),
            on_interrupt=options["on_interrupt"] or ("cancel" if broker else "detach"),
        )
        drop_if_done(ledger, state_dir, job_id, job.values, code, resumable=job.resumable)
    return code
