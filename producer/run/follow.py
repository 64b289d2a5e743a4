"""Follow a job of any kind to its end and report the outcome, or leave it to the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from producer.outputs.stdout import json_text
from producer.report.next_command import next_command
from producer.report.progress import open_progress
from producer.report.reporter import Shown, close_job
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


def follow_job(
    ledger: Ledger,
    job_id: str,
    shown: Shown,
    *,
    on_look: Callable[[JobStatus], None] | None = None,
    on_end: Callable[[JobStatus], None] | None = None,
    feeder: Feeder | None = None,
    broker: EmbeddedBroker | None = None,
    worker: EmbeddedWorker | None = None,
    on_interrupt: str = "detach",
) -> int:
    """Watch a job to its end and print the summary; return the exit code.

    `on_look` is called at each look, `on_end` after the job has ended and before the summary is
    printed.
    """
    with open_progress(shown.progress, quiet=shown.quiet) as progress:
        watch = Watch(
            ledger,
            job_id,
            progress,
            feeder=feeder,
            broker=broker,
            worker=worker,
            on_interrupt=on_interrupt,
            on_look=on_look,
        )
        try:
            status = watch.follow()
        except Detached:
            progress.note(
                f"detached; the job continues.   watch: {next_command(f'status -f {job_id}')}"
                f"   stop: {next_command(f'cancel {job_id}')}"
            )
            return EXIT_STILL_RUNNING
    if on_end is not None:
        with suppress(JobDamaged):  # the closing report says so
            on_end(status)
    return close_job(ledger, job_id, shown, interrupted=watch.interrupted)


def leave_job(ledger: Ledger, job_id: str, shown: Shown, feeder: Feeder | None) -> int:
    """Leave a job to the workers once all its units are in the ledger; return the exit code.

    If the rest of its sources cannot be split (a damaged file), the job has failed, and the closing
    report says so.
    """
    if feeder is not None:
        feeder.join()
        if ledger.status(job_id).state is JobState.FAILED:
            return close_job(ledger, job_id, shown)
    ledger.make_durable()
    shown.say(f"detached; the job continues.   watch: {next_command(f'status -f {job_id}')}")
    print(json_text({"message_type": "detached", "job": job_id}) if shown.as_json else job_id)
    return EXIT_STILL_RUNNING
