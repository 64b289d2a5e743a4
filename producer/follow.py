"""Follow a job to its end and say how it went, or leave it: shared by all that run a job."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from producer.closing import Closing, read_closing
from producer.embedded import EmbeddedBroker, EmbeddedWorker
from producer.hints import next_command
from producer.progress import open_progress
from producer.snapshot import RateMeter
from producer.stdout import print_message
from producer.watch import Detached, Watch
from ringhaul.errors import EXIT_COMPLETE, EXIT_STILL_RUNNING, OutputUnusable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus
from ringhaul.ledger.states import JobState

if TYPE_CHECKING:
    from producer.feed import Feeder


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much is shown, and in which form."""

    progress: str = "auto"
    as_json: bool = False
    quiet: bool = False
    summary_file: Path | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Shown:
        """From the options of a command; those it does not have stay as they are here."""
        auto = "json" if options["as_json"] else "auto"
        return cls(
            progress=auto if options["progress"] == "auto" else options["progress"],
            as_json=options["as_json"],
            quiet=options["quiet"],
            summary_file=options.get("summary"),
        )

    def say(self, text: str) -> None:
        """One line on stderr, unless quiet."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """One line on stderr that may call for somebody to do something."""
        print(text, file=sys.stderr, flush=True)


def follow_job(
    ledger: Ledger,
    job_id: str,
    bytes_total: int,
    shown: Shown,
    *,
    on_look: Callable[[JobStatus], None] | None = None,
    on_end: Callable[[JobStatus], None] | None = None,
    feeder: Feeder | None = None,
    broker: EmbeddedBroker | None = None,
    worker: EmbeddedWorker | None = None,
    on_interrupt: str = "detach",
) -> int:
    """Watch a job to its end, print the summary; the exit code.

    `bytes_total`: of the input; 0 where progress goes by units. `on_look` is called at each look,
    `on_end` when the job is over and before the summary is printed.
    """
    with open_progress(shown.progress, quiet=shown.quiet) as progress:
        watch = Watch(
            ledger,
            job_id,
            RateMeter(bytes_total),
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
                f"detached; the job goes on.   watch: {next_command(f'status -f {job_id}')}"
                f"   stop: {next_command(f'cancel {job_id}')}"
            )
            return EXIT_STILL_RUNNING
    if on_end is not None:
        with suppress(JobDamaged):  # the closing says so
            on_end(status)
    closing = read_closing(ledger, job_id, interrupted=watch.interrupted)
    print_closing(closing, shown)
    return closing.exit_code


def leave_job(ledger: Ledger, job_id: str, shown: Shown, feeder: Feeder | None) -> int:
    """Leave a job to the workers when all its units are handed out; the exit code.

    A job of which no unit more can be handed out (a damaged file) has failed, and is told as such.
    """
    if feeder is not None:
        feeder.join()
        if ledger.status(job_id).state is JobState.FAILED:
            closing = read_closing(ledger, job_id)
            print_closing(closing, shown)
            return closing.exit_code
    ledger.make_durable()
    shown.say(f"detached; the job goes on.   watch: {next_command(f'status -f {job_id}')}")
    print(json.dumps({"message_type": "detached", "job": job_id}) if shown.as_json else job_id)
    return EXIT_STILL_RUNNING


def print_closing(closing: Closing, shown: Shown) -> None:
    """The closing table on stderr, or the summary as JSON on stdout; then to a file, too, whole.

    Quiet: of a job that did not end well how it ended, of others nothing.
    Raises `OutputUnusable` where the file cannot be written (disk full).
    """
    if shown.as_json:
        print_message(json.dumps(closing.data))
    elif not shown.quiet:
        shown.say(closing.text)
    elif closing.exit_code != EXIT_COMPLETE:
        shown.warn(closing.alarm)
    if shown.summary_file is None:
        return
    from producer.whole_file import replacing  # what few commands need to import

    try:
        with replacing(str(shown.summary_file)) as out:
            out.write(json.dumps(closing.data, indent=2).encode() + b"\n")
    except OSError as error:
        raise OutputUnusable(
            f"{shown.summary_file}: the summary cannot be written: {error.strerror or error}"
        ) from error
