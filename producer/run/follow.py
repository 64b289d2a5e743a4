"""Follow a job of any kind to its end and report the outcome, or leave it to the workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from producer.outputs.stdout import json_text
from producer.report.progress import open_progress
from producer.report.reporter import Shown, close_job
from producer.request.next_command import next_command
from producer.run.watch import Detached, Watch
from producer.services.embedded import EmbeddedBroker, EmbeddedWorker
from producer.services.ledger import on_behalf_of
from ringhaul.causes import INTERRUPTED
from ringhaul.errors import EXIT_STILL_RUNNING, LedgerUnavailable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.states import JobState

if TYPE_CHECKING:
    from producer.run.feed import Feeder


class Ending(Protocol):
    """What a command does with a job's rows or result while it follows the job."""

    def look(self, ledger: Ledger, status: JobStatus) -> None:
        """Take what has been committed; called at each look at the job."""

    def end(self, ledger: Ledger, status: JobStatus) -> None:
        """Publish the rest, once the job has ended and before its summary is printed."""


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A job, and the command that follows it."""

    job_id: str
    ledger: Ledger
    shown: Shown
    ending: Ending
    #: Parts of this command that serve the job, restarted if they die; None: others serve it.
    broker: EmbeddedBroker | None = None
    worker: EmbeddedWorker | None = None
    on_interrupt: str = "detach"  #: what Ctrl-C does to the job: cancel | detach


@contextmanager
def cancelled_by_interrupt(ledger: Ledger, job_id: str) -> Iterator[None]:
    """Cancel the job if Ctrl-C ends the block, in which it is created and not watched yet.

    Otherwise it would stay, without the command that splits its input or publishes its first units.
    """
    try:
        yield
    except KeyboardInterrupt:
        with suppress(JobMissing, LedgerUnavailable):
            ledger.cancel(job_id, by=on_behalf_of(), cause=INTERRUPTED)
        raise


def follow_job(followed: Followed, feeder: Feeder | None = None) -> int:
    """Watch a job to its end and print the summary; return the exit code."""
    ledger, job_id, shown = followed.ledger, followed.job_id, followed.shown
    with open_progress(shown.progress, quiet=shown.quiet) as progress:
        watch = Watch(
            ledger,
            job_id,
            progress,
            feeder=feeder,
            broker=followed.broker,
            worker=followed.worker,
            on_interrupt=followed.on_interrupt,
            on_look=partial(followed.ending.look, ledger),
        )
        try:
            status = watch.follow()
        except Detached:
            progress.note(
                f"detached; the job continues.   watch: {next_command(f'status -f {job_id}')}"
                f"   stop: {next_command(f'cancel {job_id}')}"
            )
            return EXIT_STILL_RUNNING
    with suppress(JobDamaged):  # the closing report says so
        followed.ending.end(ledger, status)
    return close_job(ledger, job_id, shown, interrupted=watch.interrupted)


def leave_job(followed: Followed, feeder: Feeder | None) -> int:
    """Leave a job to the workers once all its units are in the ledger; return the exit code.

    If the rest of its sources cannot be split (a damaged file), the job has failed, and the closing
    report says so.
    """
    ledger, job_id, shown = followed.ledger, followed.job_id, followed.shown
    if feeder is not None:
        feeder.join()
        if ledger.status(job_id).state is JobState.FAILED:
            return close_job(ledger, job_id, shown)
    ledger.make_durable()
    shown.say(f"detached; the job continues.   watch: {next_command(f'status -f {job_id}')}")
    print(json_text({"message_type": "detached", "job": job_id}) if shown.as_json else job_id)
    return EXIT_STILL_RUNNING
