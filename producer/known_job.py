"""`--job-id`: a command that may be repeated. Where its job is there already, it goes on with it.

Whoever starts commands for others (a schedule, cron, a container that is started again) cannot know
whether the one before was killed before or after it made its job. With an id that it gives, it need
not: the second command follows the job, runs what is missing of one that failed, or tells the end
of one that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.startup import take_sigterm
from ringhaul.errors import UsageError

if TYPE_CHECKING:
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
            take_sigterm()
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
    from producer.ledgers import reading_ledger
    from producer.options import connection_flags, settle
    from producer.outputs import refuse_two_on_stdout
    from ringhaul.ledger.reading import JobMissing
    from ringhaul.ledger.states import JobState
    from tasks.publish import KIND_LABEL

    settle(connection_flags(options), options["config_file"])
    job_id = options["job_id"]
    if kind in ("count", "query"):  # whatever its job has come to, the result is printed
        refuse_two_on_stdout(options)
    with reading_ledger(None) as ledger:
        try:
            status = ledger.status(job_id)
        except JobMissing:
            return None, False
        found = status.labels.get(KIND_LABEL, "load")
        if found != kind:
            raise UsageError(f"--job-id {job_id}: there is a job of this id, and it is a {found}")
        running = status.state is JobState.RUNNING
        if running and not status.sealed and kind in ("unload", "count", "query"):
            return None, True
        if running and kind in ("lookup", "exec"):
            return _follow_asking(options, ledger, status), False
        if not running and status.state not in (JobState.FAILED, JobState.QUARANTINED):
            return _tell_end(options, ledger, status), False
    return _resume(options), False


def _resume(options: Mapping[str, Any]) -> int:
    """Run what is missing of a job, or follow it while others do."""
    from producer.ledgers import reading_ledger
    from producer.run_resume import run_resume
    from ringhaul.ledger.states import SETTLED, JobState

    try:
        return run_resume({**options, "job": options["job_id"], "max_errors": None})
    except UsageError:
        with reading_ledger(None) as ledger:
            status = ledger.status(options["job_id"])
            if status.state not in (*SETTLED, JobState.FAILED):
                raise
            # It came to its end just now, or must not be done twice.
            return _tell_end(options, ledger, status)


def _tell_end(options: Mapping[str, Any], ledger: Ledger, status: JobStatus) -> int:
    """What the command that followed the job to its end would have done then."""
    from producer.closing import read_closing
    from producer.follow import Shown, print_closing
    from ringhaul.ledger.states import JobState
    from tasks.publish import KIND_LABEL

    kind = status.labels.get(KIND_LABEL)
    if kind in ("lookup", "exec"):
        _publish_answers(ledger, status)
    elif status.state in (JobState.COMPLETE, JobState.PARTIAL) and kind == "unload":
        _publish_parts(ledger, status)
    elif status.state is JobState.COMPLETE and kind in ("count", "query"):
        from producer.run_query import print_folded

        print_folded(ledger, status.job, options["result_format"], options.get("output"))
    closing = read_closing(ledger, status.job)
    print_closing(closing, Shown.from_options(options))
    return closing.exit_code


def _follow_asking(options: Mapping[str, Any], ledger: Ledger, status: JobStatus) -> int:
    """Follow a lookup or an exec that runs: also one whose statement must not be done twice."""
    from producer.feed import Feeder
    from producer.follow import Shown, follow_job
    from tasks.kinds import job_of

    job: Any = job_of(ledger.job_spec(status.job))
    if job.output is not None and job.streams:
        raise UsageError(f"job {status.job} wrote to a standard output that is gone")
    feeder = None
    if not status.sealed:
        if job.spans:
            ledger.fail(status.job, "its command ended before all its units were handed out")
        else:
            feeder = Feeder(ledger, status.job, status.epoch, job.values)
            feeder.start()
    return follow_job(
        ledger,
        status.job,
        0,
        Shown.from_options(options),
        feeder=feeder,
        on_end=lambda status: _publish_answers(ledger, status),
        on_interrupt=options["on_interrupt"] or "detach",
    )


def _publish_parts(ledger: Ledger, status: JobStatus) -> None:
    """The manifest of an unload, if it wrote files."""
    from ringhaul.read.finish import publish_manifest
    from tasks.kinds import job_of

    job: Any = job_of(ledger.job_spec(status.job))
    if not job.streams:
        publish_manifest(ledger, status.job)


def _publish_answers(ledger: Ledger, status: JobStatus) -> None:
    """The manifest of a lookup or an exec, if it wrote files."""
    from ringhaul.read.ask_finish import publish_ask_manifest
    from tasks.kinds import job_of

    job: Any = job_of(ledger.job_spec(status.job))
    if job.output is not None and not job.streams:
        publish_ask_manifest(ledger, status)
