"""Watch a job to its end: keep it going, show its progress, take Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from producer.report.next_command import next_command
from producer.report.progress import Progress
from producer.report.snapshot import RateMeter, Snapshot
from producer.services.embedded import EmbeddedBroker, EmbeddedWorker
from producer.services.ledger import on_behalf_of
from ringhaul.dataplane.latency import percentile_ms
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.open_units import count_open_units
from ringhaul.ledger.reading import JobStatus
from ringhaul.ledger.sweep import sweep_job
from ringhaul.ledger.workers import Workers
from tasks.publish import publish_next, publisher, windows

if TYPE_CHECKING:
    from producer.run.feed import Feeder

LOOK_EVERY_S = 0.2
#: Where a look decides when something begins or ends: at a job's start, when its first units have
#: to be published, and when its last ones are being worked on. A look costs about 1.5 ms of CPU.
LOOK_SOON_S = 0.03
#: How long a start may take.
START_S = 2.0
#: Of the time to the end, as it is reckoned, so much passes before the next look. The reckoning is
#: off by more than half now and then: the last look before the end must not be far from it.
END_SHARE = 0.15
SWEEP_EVERY_S = 1.0
#: A poll without Redis ends soon: the user sees why, and an embedded server is started again.
PATIENCE_MS = 1500
#: How long a stopped job's workers get to let go of their units.
WIND_DOWN_S = 15.0
#: After Ctrl-C or SIGTERM Redis is not waited for longer: Kubernetes kills 30 s after its SIGTERM.
LEAVE_S = 10.0


def pause_before_look_s(
    status: JobStatus, eta_s: float | None, age_s: float, *, fed: bool
) -> float:
    """How long until the next look: short when something is about to begin or to end.

    `eta_s`: to the end of the job, if it is known; `age_s`: of the watch; `fed`: all units are
    split, and published as far as there is room.
    """
    if not fed:
        return LOOK_SOON_S if age_s < START_S else LOOK_EVERY_S
    if not (status.sealed and 0 < status.leased == status.left):
        return LOOK_EVERY_S
    # The last units are being worked on. A job that is too young to tell may be a short one.
    soon_s = 0.0 if eta_s is None else eta_s * END_SHARE
    return min(max(soon_s, LOOK_SOON_S), LOOK_EVERY_S)


class Detached(Exception):
    """The user let go of a job that goes on without this command."""


class Watch:
    """Follows one job. Embedded parts are started again when they die."""

    def __init__(
        self,
        ledger: Ledger,
        job_id: str,
        meter: RateMeter,
        progress: Progress,
        *,
        feeder: Feeder | None = None,
        broker: EmbeddedBroker | None = None,
        worker: EmbeddedWorker | None = None,
        on_interrupt: str = "cancel",
        on_look: Callable[[JobStatus], None] | None = None,
    ) -> None:
        self._ledger = ledger.with_patience(PATIENCE_MS)
        self._job_id, self._meter, self._progress = job_id, meter, progress
        self._feeder, self._broker, self._worker = feeder, broker, worker
        self._on_interrupt, self._on_look = on_interrupt, on_look
        self._interrupts = 0
        self._interrupted_at = 0.0  #: the first time
        self._told_detaching = False
        self._sweep_due = 0.0
        self._started_at = time.monotonic()
        #: All units are split, and were published as far as there was room.
        self._fed = False
        self._away = self._paused = False
        self._facts: dict[str, Any] = {}

    @property
    def interrupted(self) -> bool:
        """Ctrl-C was pressed."""
        return self._interrupts > 0

    def follow(self) -> JobStatus:
        """Return when the job has ended. Raises `Detached` when the user let go of it, and
        `LedgerUnavailable` when they want to and Redis is away."""
        with self._taking_interrupts():
            if self._feeder is not None:
                import tasks.application  # noqa: F401 - Celery: read while the feeder splits

            while True:
                pause_s = LOOK_EVERY_S
                try:
                    status, snapshot = self._round()
                    if status.finished and self._feeder is not None:
                        self._feeder.stop()
                    if status.finished and self._feeder_done():
                        status = self._wind_down(status)
                        self._dismiss_worker(status)
                        return status
                    age_s = time.monotonic() - self._started_at
                    pause_s = pause_before_look_s(status, snapshot.eta_s, age_s, fed=self._fed)
                except LedgerUnavailable as error:
                    self._wait_for_redis(error)
                time.sleep(pause_s)

    def _round(self) -> tuple[JobStatus, Snapshot]:
        """One look: top the queue up, sweep when due, show."""
        self._handle_interrupt()
        if self._worker is not None and self._interrupts < 2:
            self._worker.revive()
        now = time.monotonic()
        fed = self._feeder_done()  # seen before publishing, which then takes in the last units too
        if now >= self._sweep_due:
            self._sweep_due = now + SWEEP_EVERY_S
            self._sweep()
        elif not self._fed:
            publish_next(self._ledger, self._job_id)
        self._fed = fed
        status = self._ledger.status(self._job_id)
        if self._on_look is not None:
            self._on_look(status)
        self._tell_pause(status)
        snapshot = self._meter.look(status, **self._facts)
        self._progress.show(snapshot)
        if self._away:
            self._away = False
            self._progress.note("Redis is back; the job goes on")
        return status, snapshot

    def _tell_pause(self, status: JobStatus) -> None:
        """Somebody else paused the job, or lets it go on."""
        if status.paused != self._paused and not status.finished:
            words = f"paused; to go on: {next_command(f'resume {self._job_id}')}"
            self._progress.note(words if status.paused else "the job goes on")
        self._paused = status.paused

    def _sweep(self) -> None:
        """Look after the job, and renew what `show` tells beside its status: both cost more than
        a look, on a machine that may also run the workers."""
        window = windows(self._ledger)(self._job_id)
        sweep_job(self._ledger, self._job_id, window, publisher(self._ledger))
        count_open_units(self._ledger.caller)
        alive = Workers(self._ledger.caller).alive()
        latencies = {int(k): v for k, v in self._ledger.latencies(self._job_id).items()}
        self._facts = {
            "workers": sum(worker.slots for worker in alive),
            "hosts": len({worker.host for worker in alive}),
            "p50_ms": percentile_ms(latencies, 0.5),
            "p99_ms": percentile_ms(latencies, 0.99),
        }

    def _wait_for_redis(self, error: LedgerUnavailable) -> None:
        if self._interrupts and time.monotonic() - self._interrupted_at > LEAVE_S:
            self._progress.note(f"to go on: {next_command(f'resume {self._job_id}')}")
            raise error
        if not self._away:
            self._away = True
            self._progress.note(f"waiting: {error}")
        if self._broker is not None:
            self._broker.revive()

    def _feeder_done(self) -> bool:
        return self._feeder is None or self._feeder.finished

    def _wind_down(self, status: JobStatus) -> JobStatus:
        """A job that was ended early is over when its workers let go: their commits still count."""
        give_up = time.monotonic() + WIND_DOWN_S
        while status.leased and self._interrupts < 2 and time.monotonic() < give_up:
            time.sleep(LOOK_EVERY_S)
            self._ledger.sweep(self._job_id)
            status = self._ledger.status(self._job_id)
        if self._on_look is not None:
            self._on_look(status)
        return status

    def _dismiss_worker(self, status: JobStatus) -> None:
        """End an embedded worker with its job. One that holds units still is stopped later."""
        if self._worker is not None and not status.leased and self._worker.dismiss():
            with suppress(LedgerUnavailable):  # it could not take leave itself
                Workers(self._ledger.caller).leave(self._worker.registered)

    def _handle_interrupt(self) -> None:
        """First Ctrl-C: cancel at the block's end, or let go of it. Second: stop at once."""
        if not self._interrupts:
            return
        cancelled = self._told_detaching and self._interrupts >= 2
        if self._on_interrupt == "detach" and not cancelled:
            if self._feeder_done():
                raise Detached
            self._tell_detaching()
            return
        self._ledger.cancel(self._job_id, by=on_behalf_of())
        if self._interrupts >= 2 and self._worker is not None:
            self._worker.stop(now=True)

    def _tell_detaching(self) -> None:
        if not self._told_detaching:
            self._told_detaching = True
            self._progress.note("detaching when the input is split; Ctrl-C again cancels the job")

    @contextmanager
    def _taking_interrupts(self) -> Iterator[None]:
        def count(number: int, frame: FrameType | None) -> None:
            self._interrupts += 1
            self._interrupted_at = self._interrupted_at or time.monotonic()
            if self._interrupts > 2:
                raise KeyboardInterrupt

        before = {taken: signal.signal(taken, count) for taken in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for taken, handler in before.items():
                signal.signal(taken, handler)
