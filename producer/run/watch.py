"""Watch a job to its end: keep its queue filled, show its progress, handle Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from producer.figures.snapshot import Snapshot
from producer.figures.speed import recent_snapshot
from producer.interrupts import taking_interrupts
from producer.report.progress import Progress
from producer.request.next_command import next_command
from producer.services.embedded import EmbeddedBroker, EmbeddedWorker
from producer.services.ledger import on_behalf_of
from ringhaul.causes import INTERRUPTED
from ringhaul.dataplane.latency import percentile_ms
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.fleet import Fleet, look_at_fleet
from ringhaul.ledger.history import History, Sample
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.open_units import count_open_units
from ringhaul.ledger.sweep import sweep_job
from ringhaul.ledger.workers import Worker, Workers
from tasks.publish import publish_next, publisher, queue_of, windows

if TYPE_CHECKING:
    from producer.run.feed import Feeder

LOOK_EVERY_S = 0.2
#: Pause when every look matters: at a job's start, when its first units have to be published, and
#: while its last units run. A look costs about 1.5 ms of CPU.
LOOK_SOON_S = 0.03
#: How long the start of a job counts as such.
START_S = 2.0
#: The share of the estimated time to the end that passes before the next look. The estimate is
#: off by more than half now and then: the last look before the end must not be far from it.
END_SHARE = 0.15
SWEEP_EVERY_S = 1.0
#: Listing thousands of workers takes a while: at most this share of the time.
LIST_SHARE = 0.02
#: A look fails this soon without Redis: the user sees why, and an embedded server is restarted.
PATIENCE_MS = 1500
#: How long the workers of a stopped job may take to release their units.
WIND_DOWN_S = 15.0
#: How long to wait for Redis after Ctrl-C or SIGTERM: Kubernetes kills 30 s after its SIGTERM.
LEAVE_S = 10.0


def pause_before_look_s(
    status: JobStatus, eta_s: float | None, age_s: float, *, fed: bool
) -> float:
    """Return the seconds until the next look: few if something is about to start or end.

    `eta_s`: estimated time to the end of the job, if known; `age_s`: age of the watch; `fed`: all
    units are split, and published as far as the window has room.
    """
    if not fed:
        return LOOK_SOON_S if age_s < START_S else LOOK_EVERY_S
    if not (status.sealed and 0 < status.leased == status.pending):
        return LOOK_EVERY_S
    # The last units are running. Without an estimate, the job may be a short one.
    soon_s = 0.0 if eta_s is None else eta_s * END_SHARE
    return min(max(soon_s, LOOK_SOON_S), LOOK_EVERY_S)


class _Counted(NamedTuple):
    """The workers that consume a job's queue."""

    slots: int
    hosts: int


def _count_workers(alive: Sequence[Worker], status: JobStatus) -> _Counted:
    queue = queue_of(status.labels.get(QUEUE_LABEL, ""), alive)
    ours = [worker for worker in alive if queue in worker.queues]
    return _Counted(sum(worker.slots for worker in ours), len({worker.host for worker in ours}))


class Detached(Exception):
    """The user detached from a job, which continues without this command."""


class Watch:
    """Follows one job, and restarts embedded parts that die."""

    def __init__(
        self,
        ledger: Ledger,
        job_id: str,
        progress: Progress,
        *,
        feeder: Feeder | None = None,
        broker: EmbeddedBroker | None = None,
        worker: EmbeddedWorker | None = None,
        on_interrupt: str = "cancel",
        on_look: Callable[[JobStatus], None] | None = None,
    ) -> None:
        self._ledger = ledger.with_patience(PATIENCE_MS)
        self._job_id, self._progress = job_id, progress
        self._feeder, self._broker, self._worker = feeder, broker, worker
        self._on_interrupt, self._on_look = on_interrupt, on_look
        self._interrupts = 0
        self._interrupted_at = 0.0  #: time of the first Ctrl-C
        self._detaching_noted = False
        self._sweep_due = 0.0
        self._started_at = time.monotonic()
        #: All units are split, and were published as far as the window had room.
        self._fed = False
        self._away = self._paused = False
        self._facts: dict[str, Any] = {}
        self._facts_due = False
        self._fleet = Fleet((), {})
        self._workers_due = 0.0
        self._samples: list[Sample] = []

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interrupts > 0

    def follow(self) -> JobStatus:
        """Return the status of the job once it has ended. Raises `Detached` if the user detached,
        and `LedgerUnavailable` if they wanted to while Redis was away."""
        with taking_interrupts(self._note_interrupt):
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
        """Make one look: refill the queue, sweep when due, show progress."""
        self._handle_interrupt()
        if self._worker is not None and self._interrupts < 2:
            self._worker.revive()
        now = time.monotonic()
        # Checked before publishing, so that the last units are published too.
        fed = self._feeder_done()
        if now >= self._sweep_due:
            self._sweep_due = now + SWEEP_EVERY_S
            self._sweep()
        elif not self._fed:
            publish_next(self._ledger, self._job_id)
        self._fed = fed
        status = self._ledger.status(self._job_id)
        if self._on_look is not None:
            self._on_look(status)
        self._note_pause(status)
        if self._facts_due:
            self._facts_due = False
            self._read_facts(status)
        snapshot = recent_snapshot(status, self._samples, **self._facts)
        self._progress.show(snapshot)
        if self._away:
            self._away = False
            self._progress.note("Redis is back; the job continues")
        return status, snapshot

    def _note_pause(self, status: JobStatus) -> None:
        """Report that another command paused the job or let it continue."""
        if status.paused != self._paused and not status.finished:
            words = f"paused; to continue: {next_command(f'resume {self._job_id}')}"
            self._progress.note(words if status.paused else "the job continues")
        self._paused = status.paused

    def _sweep(self) -> None:
        """Sweep the job. This costs more than a look, and so do the figures that its status lacks,
        on a machine that may also run the workers."""
        window = windows(self._ledger)(self._job_id)
        sweep_job(self._ledger, self._job_id, window, publisher(self._ledger))
        count_open_units(self._ledger.caller)
        self._facts_due = True

    def _read_facts(self, status: JobStatus) -> None:
        """Read what is shown of a job beside its status: workers, latencies, samples."""
        began_s = time.monotonic()
        if began_s >= self._workers_due:
            self._fleet = look_at_fleet(self._ledger.caller)
            now_s = time.monotonic()
            self._workers_due = now_s + (now_s - began_s) / LIST_SHARE
        with suppress(JobDamaged):  # a job that lost only its history is complete
            self._samples = History(self._ledger.caller).recent(status)
        latencies = {int(k): v for k, v in self._ledger.latencies(self._job_id).items()}
        counted = _count_workers(self._fleet.workers, status)
        self._facts = {
            "workers": counted.slots,
            "hosts": counted.hosts,
            # A command restarts its own worker.
            "fleet": self._fleet if self._worker is None else None,
            "p50_ms": percentile_ms(latencies, 0.5),
            "p99_ms": percentile_ms(latencies, 0.99),
        }

    def _wait_for_redis(self, error: LedgerUnavailable) -> None:
        if self._interrupts and time.monotonic() - self._interrupted_at > LEAVE_S:
            self._progress.note(f"to continue: {next_command(f'resume {self._job_id}')}")
            raise error
        if not self._away:
            self._away = True
            self._progress.note(f"waiting: {error}")
        if self._broker is not None:
            self._broker.revive()

    def _feeder_done(self) -> bool:
        return self._feeder is None or self._feeder.finished

    def _wind_down(self, status: JobStatus) -> JobStatus:
        """Wait until the workers of a stopped job have released their units: their commits still
        count."""
        give_up = time.monotonic() + WIND_DOWN_S
        while status.leased and self._interrupts < 2 and time.monotonic() < give_up:
            time.sleep(LOOK_EVERY_S)
            self._ledger.sweep(self._job_id)
            status = self._ledger.status(self._job_id)
        if self._on_look is not None:
            self._on_look(status)
        return status

    def _dismiss_worker(self, status: JobStatus) -> None:
        """End the embedded worker with its job. A worker that holds units is stopped later."""
        if self._worker is not None and not status.leased and self._worker.dismiss():
            with suppress(LedgerUnavailable):  # it could not deregister itself
                Workers(self._ledger.caller).leave(self._worker.registered)

    def _handle_interrupt(self) -> None:
        """At the first Ctrl-C, cancel the job after the current blocks, or detach; at the second,
        stop it at once."""
        if not self._interrupts:
            return
        cancelled = self._detaching_noted and self._interrupts >= 2
        if self._on_interrupt == "detach" and not cancelled:
            if self._feeder_done():
                raise Detached
            self._note_detaching()
            return
        self._ledger.cancel(self._job_id, by=on_behalf_of(), cause=INTERRUPTED)
        if self._interrupts >= 2 and self._worker is not None:
            self._worker.stop(now=True)

    def _note_detaching(self) -> None:
        if not self._detaching_noted:
            self._detaching_noted = True
            self._progress.note("detaching when the input is split; Ctrl-C again cancels the job")

    def _note_interrupt(self) -> None:
        self._interrupts += 1
        self._interrupted_at = self._interrupted_at or time.monotonic()
