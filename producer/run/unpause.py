"""Let a paused job continue."""

from __future__ import annotations

from collections.abc import Collection

from producer.options.control import ResumeOptions
from producer.outputs.stdout import json_text
from producer.report.reporter import Shown
from producer.request.conflicts import refuse_workers_of_others
from producer.request.next_command import next_command
from producer.request.settings import connection_flags, settle
from producer.services.ledger import ledger_of
from ringhaul.errors import UsageError
from ringhaul.ledger.fleet import look_at_fleet
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from tasks.publish import publish_next, queue_of

#: Options that only a command that follows its job has, by their names in `options`.
_OF_FOLLOWING = ("workers", "on_interrupt", "progress", "summary", "report")


def unpause(options: ResumeOptions) -> bool:
    """Let a paused job continue; return whether nothing else is left to do.

    A job that has missing units or no workers has lost its command: it must be resumed as if it had
    not been paused. Raises `JobMissing`, and `UsageError` for what cannot be changed before a job
    has ended.
    """
    job_id = options.job
    loaded = settle(connection_flags(options), options.config_file)
    refuse_workers_of_others(loaded, options)
    with ledger_of(loaded) as ledger:
        status = ledger.status(job_id)
        if not status.paused:
            return False
        if options.max_errors:
            raise UsageError(f"job {job_id} is paused: --max-errors can be changed when it is over")
        if options.output is not None or options.result_format is not None:
            raise UsageError(
                f"job {job_id} is paused: resume it first; -o and --format are for the result "
                "of a count or a query, when it is over"
            )
        staffed = is_staffed(ledger, status)
        if status.sealed and staffed:
            _refuse_following(job_id, options.given)
        ledger.unpause(job_id)
        status = ledger.status(job_id)
        if not status.finished and not (status.sealed and staffed):
            return False
        publish_next(ledger, job_id)
    watch = "" if status.finished else f"   watch: {next_command(f'status -f {job_id}')}"
    shown = Shown.from_options(options)
    shown.say(f"{job_id} is {status.state_name}{watch}")
    if shown.as_json:
        print(json_text({"message_type": "detached", "job": job_id}))
    return True


def is_staffed(ledger: Ledger, status: JobStatus) -> bool:
    """Return whether any running worker consumes the job's queue."""
    workers = look_at_fleet(ledger.caller).workers
    queue = queue_of(status.labels.get(QUEUE_LABEL, ""), workers)
    return any(queue in worker.queues for worker in workers)


def _refuse_following(job_id: str, given: Collection[str]) -> None:
    """Raise `UsageError` for options of a command that follows the job, since this one does not."""
    found = [f"--{name.replace('_', '-')}" for name in _OF_FOLLOWING if name in given]
    if found:
        raise UsageError(
            f"{', '.join(found)}: job {job_id} is paused, and its workers continue it without "
            f"this command; leave it out, and follow the job by `ringhaul status -f {job_id}`"
        )
