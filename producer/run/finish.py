"""Publish what an ended job leaves behind: the manifest of an unload, the result of a count or
query, the SSTables of a load."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING

from producer.request.next_command import next_command
from ringhaul.errors import LedgerUnavailable, OutputUnavailable, OutputUnusable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.kinds import ClosingStep, JobKind
from ringhaul.ledger.labels import PUBLISHES_LABEL
from ringhaul.ledger.ledger import new_token
from ringhaul.ledger.states import JobState
from tasks.kinds import Job, is_load_job, is_read_job, read_job

if TYPE_CHECKING:
    from ringhaul.ledger.job_status import JobStatus
    from ringhaul.ledger.ledger import Ledger
    from ringhaul.output.job import ResultOutput


#: How long a command may write before others do: it may look through a folder of many files.
WRITE_MS = 60_000
#: How long a job's command has to see the end and write, before `status -f` writes in its place. A
#: living command looks several times a second.
LEAVE_MS = 3_000
_ASK_EVERY_MS = 200


@dataclass(frozen=True)
class PublishedEnd:
    """What a command that leads a job does at its end: publish it."""

    job: Job
    #: Where the result of a count or a query goes; None: where the job says.
    result: ResultOutput | None = None

    def look(self, ledger: Ledger, status: JobStatus) -> None:
        """Do nothing: the end comes whole."""

    def end(self, ledger: Ledger, status: JobStatus) -> None:
        """Publish. Raises as `publish_end` does."""
        if self.job.closing is not ClosingStep.NOTHING:
            publish_end(ledger, status, self.result)


@dataclass(frozen=True)
class WatchedEnd:
    """What `status -f` does at the end of a job: publish it if the job's own command does not."""

    #: Takes what happened, and what failed: the job is over in any case.
    say: Callable[[str], None]

    def look(self, ledger: Ledger, status: JobStatus) -> None:
        """Do nothing: the end comes whole."""

    def end(self, ledger: Ledger, status: JobStatus) -> None:
        """Publish. Never raises for an output that cannot be written."""
        try:
            publish_watched(ledger, status, self.say)
        except JobDamaged:  # the closing report says so
            return
        except (OutputUnusable, OutputUnavailable) as error:
            self.say(str(error))


def publish_end(
    ledger: Ledger,
    status: JobStatus,
    result: ResultOutput | None = None,
    *,
    again: bool = False,
) -> None:
    """Write the manifest of an ended unload, lookup or exec, move the SSTables of a load to their
    folder, remove what imports left, or print the result of a complete count or query to `result`,
    by default to where the command wanted it.

    Does nothing for other jobs. Writes each file once, as users may have moved it; `again` forces a
    rewrite. A result that goes elsewhere, or to standard output, is printed each time. Raises
    `OutputUnusable` if the parts cannot be seen from here, or the result cannot be written.
    """
    job = _published_job(ledger, status)
    if job is None:
        return
    own = own_result(job)
    output = own and (result or own)
    if own is not None and output is not None and _goes_elsewhere(output, own):
        _write(ledger, status, job, output)
        return  # where the job wanted it, it is still missing
    if again or (output is not None and not output.path):
        _write(ledger, status, job, output)
        ledger.note_published(status.job)
        _tidy(job)
    else:
        _write_once(ledger, status, job, output)


def _goes_elsewhere(output: ResultOutput, own: ResultOutput) -> bool:
    """Return whether the result is still missing where the job wanted it, after it went to
    `output`."""
    return output.path != own.path or bool(output.path and output.form != own.form)


def publish_watched(ledger: Ledger, status: JobStatus, say: Callable[[str], None]) -> None:
    """Publish the end of a job that `status -f` watched.

    A result meant for standard output is not printed; `say` points to `resume`. Waits for the job's
    own command to publish first.
    """
    job = _published_job(ledger, status)
    if job is None:
        return
    output = own_result(job)
    if output is None:
        _write_once(ledger, status, job, None, leave_ms=LEAVE_MS)
    elif output.path:
        if _write_once(ledger, status, job, output, leave_ms=LEAVE_MS):
            say(f"the result is in {output.path}")
    elif not status.published:
        say(f"`{next_command(f'resume {status.job}')}` prints the result")


def own_result(job: Job) -> ResultOutput | None:
    """Return where the job wants its result; None if it has none."""
    return job.result_output if job.closing is ClosingStep.RESULT and is_read_job(job) else None


def _write_once(
    ledger: Ledger, status: JobStatus, job: Job, output: ResultOutput | None, leave_ms: int = 0
) -> bool:
    """Write, unless another command has done so or is doing so; return whether this one did."""
    token = new_token()
    while wait_ms := ledger.may_publish(status.job, token, lease_ms=WRITE_MS, leave_ms=leave_ms):
        if wait_ms < 0:
            return False
        sleep(min(wait_ms, _ASK_EVERY_MS) / 1000)
    try:
        _write(ledger, status, job, output)
    except BaseException:
        with suppress(LedgerUnavailable):  # the lease expires
            ledger.not_published(status.job, token)
        raise
    ledger.note_published(status.job)
    _tidy(job)
    return True


def _tidy(job: Job) -> None:
    """Remove the parts of an unload to one file. Only now, as without them nothing of `_write` can
    be repeated after a crash."""
    if is_read_job(job) and job.output is not None and job.output.file:
        from ringhaul.output.one_file import remove_parts

        remove_parts(job.output)


def _write(ledger: Ledger, status: JobStatus, job: Job, output: ResultOutput | None) -> None:
    """Write the manifest or the result. `output`: where the result goes, if there is one. Raises
    `JobDamaged` if Redis lost part of the job: what is left would look complete."""
    ledger.check(status.job)
    if is_load_job(job):
        from producer.destination.ways import way_of

        way_of(job.destination.name).publish(ledger, status.job, job.destination)
    elif not is_read_job(job):
        from ringhaul.statements.finish import publish_ask_manifest

        publish_ask_manifest(ledger, status)
    elif output is not None:
        from producer.run.read_result import print_read_result

        print_read_result(ledger, status.job, job, output)
    else:
        from ringhaul.scan.finish import is_joined, publish_manifest

        if not is_joined(ledger, status.job, job):
            publish_manifest(ledger, status.job)


def _published_job(ledger: Ledger, status: JobStatus) -> Job | None:
    """Return the job if it is complete and a command publishes something of it, otherwise None."""
    done = status.state in (JobState.COMPLETE, JobState.PARTIAL)
    reads = not JobKind.of_labels(status.labels).is_load
    if not done or not (reads or PUBLISHES_LABEL in status.labels):
        return None
    job = read_job(ledger, status.job)
    return None if job.closing is ClosingStep.NOTHING else job
