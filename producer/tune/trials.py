"""Run trials of `ringhaul tune`: small loads, one after the other, each removed once measured."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from config.settings import Loaded, Settings
from producer.figures.load_summary import Summary, read_summary
from producer.plan.plan import Plan
from producer.report.progress import NoProgress
from producer.run.job import create_job, feed_job
from producer.run.watch import Watch
from producer.services.embedded import LOAD_PREFIX, EmbeddedBroker
from producer.tune.sample import Sample, first_sources, trial_job
from producer.tune.setup import Setup
from producer.tune.table import Figures
from producer.tune.worker_groups import WorkerGroups
from ringhaul.errors import ClusterError, RinghaulError
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.forget import forget_job
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.states import JobState
from ringhaul.records.job import LoadJob
from tasks.connect import open_ledger

#: Label of a trial: the run of `ringhaul tune` that it belongs to.
TUNE_LABEL = "tune"
#: A trial is cut off when it takes this many times as long as usual: its rate until then suffices.
CUT_AFTER = 2.5


class TrialFailed(ClusterError):
    """A trial could not write its rows."""


@dataclass
class Trials:
    """Runs trials of one job, and keeps the measurements."""

    run: str  #: id of the run of `ringhaul tune`
    settings: Settings  #: with the broker
    for_workers: Loaded  #: the settings of worker processes, with the broker
    job: LoadJob  #: the load, into the table of the trials
    max_errors: str
    slots: int  #: standing worker processes; 0: the groups are used
    label: str  #: queue label of the standing workers
    groups: WorkerGroups | None = None
    broker: EmbeddedBroker | None = None
    figures: dict[Setup, list[Figures]] = field(default_factory=dict)
    count: int = 0
    _running: str = ""  #: the job that runs

    def __post_init__(self) -> None:
        self.ledger = open_ledger(self.settings)

    def first(self, setup: Setup, seconds: float) -> tuple[Figures, bool]:
        """Load the beginning for some seconds, so that everything is warm; also return whether that
        reached the end. Raises as `measure` does."""
        sample = Sample(
            sources=first_sources(self.job), records=0, bytes_count=self.job.total_bytes
        )
        figures, state = self._load(setup, sample, seconds)
        return figures, state is JobState.COMPLETE or state is JobState.PARTIAL

    def measure(self, setup: Setup, sample: Sample, seconds: float) -> float:
        """Load a sample with a setup; return the rate in rows/s. `seconds`: how long it is expected
        to take.

        Raises `TrialFailed` if the load fails, and `KeyboardInterrupt` after Ctrl-C.
        """
        bound_s = seconds if not sample.records else seconds * CUT_AFTER
        figures, _ = self._load(setup, sample, bound_s)
        self.figures.setdefault(setup, []).append(figures)
        return figures.rate

    def abandon(self) -> None:
        """End and remove the trial that was running, if any."""
        if not self._running:
            return
        # On a new connection: the other one may be in the middle of an answer.
        ledger = open_ledger(self.settings, patience_ms=1500)
        with suppress(RinghaulError):
            ledger.cancel(self._running)
            self._forget(ledger)

    def _load(self, setup: Setup, sample: Sample, seconds: float) -> tuple[Figures, JobState]:
        slots = setup.workers or self.slots
        job = trial_job(self.job, sample, setup, slots)
        job_id = self._create(job, setup)
        feeder = feed_job(self.ledger, job_id, job, 1)
        psutil.cpu_percent(None)  # measures from now on

        def cut_off(status: JobStatus) -> None:
            if self.groups is not None:
                self.groups.revive()
            began_ms = status.started_ms
            if began_ms and not status.finished and status.now_ms - began_ms > seconds * 1000:
                self.ledger.cancel(job_id)

        watch = Watch(
            self.ledger,
            job_id,
            NoProgress(),
            feeder=feeder,
            broker=self.broker,
            on_look=cut_off,
        )
        status = watch.follow()
        busy = psutil.cpu_percent(None) / 100 if self.groups is not None else None
        if watch.interrupted:
            raise KeyboardInterrupt
        summary = read_summary(self.ledger, status)
        if status.state not in (JobState.COMPLETE, JobState.PARTIAL, JobState.CANCELLED):
            raise TrialFailed(_why(summary, self._running))
        self._forget(self.ledger)
        self.count += 1
        return _figures(summary, busy), status.state

    def _create(self, job: LoadJob, setup: Setup) -> str:
        self._running = job_id = f"{LOAD_PREFIX}-{secrets.token_hex(3)}"
        queue = self.label if self.groups is None else self.groups.label(setup.workers)
        plan = Plan(
            job=job,
            target=job.table.name,
            headline="",
            error_limit=ErrorLimit.parse(self.max_errors),
        )
        create_job(
            self.ledger, job_id, plan, {QUEUE_LABEL: queue, TUNE_LABEL: self.run, **job.labels}
        )
        return job_id

    def _forget(self, ledger: Ledger) -> None:
        with suppress(JobMissing, JobDamaged):
            forget_job(ledger.caller, self._running, ledger.status(self._running).units)
        self._running = ""


def _figures(summary: Summary, busy: float | None) -> Figures:
    status, report = summary.status, summary.report
    began_ms = status.started_ms or status.created_ms
    # Units of a trial that is cut off write on until the end of their blocks.
    cut = status.state is JobState.CANCELLED
    ended_ms = status.now_ms if cut else status.finished_ms or status.now_ms
    seconds = (ended_ms - began_ms) / 1000
    # Only the rows of units that were cut off are known.
    rows = report.written + status.live.rows
    return Figures(
        rate=rows / seconds if seconds > 0 else 0.0,
        rows=rows,
        bytes_count=report.input_bytes + status.live.bytes,
        seconds=seconds,
        cpu_us_per_row=report.cpu_ms * 1000 / report.written if report.written else None,
        p50_ms=report.p50_ms,
        p99_ms=report.p99_ms,
        retries=report.retries,
        busy=busy,
    )


def _why(summary: Summary, job_id: str) -> str:
    status = summary.status
    if status.state is JobState.STOPPED:
        return (
            f"too many records of the sample are rejected: `ringhaul errors {job_id}` lists them; "
            "--max-errors allows more"
        )
    return f"the sample cannot be loaded ({status.state_name}): {status.last_error or 'no reason'}"
