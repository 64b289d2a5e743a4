"""What the ledger knows about a job at one moment, and about its units in progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ringhaul.ledger.pace import NO_PACE, Pace
from ringhaul.ledger.shares import NORMAL
from ringhaul.ledger.states import JobState

#: Shown instead of the state of a job that Redis lost parts of.
DAMAGED = "DAMAGED"


@dataclass(frozen=True, kw_only=True)
class Live:
    """Progress of running attempts, and what attempts of a stopped job had done.

    Never part of the totals: it is dropped when its unit is committed or retried.
    """

    rows: int = 0
    rejected: int = 0
    bytes: int = 0
    in_flight: int = 0  #: Unanswered requests now. Workers of older versions do not report it.

    def pack(self) -> str:
        """Return the form that the ledger stores. Older versions read the first three figures."""
        return f"{self.rows},{self.rejected},{self.bytes},{self.in_flight}"


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """A snapshot of a job; all figures are from the same moment."""

    job: str
    state: JobState
    epoch: int  #: Incremented by each resume.
    sealed: bool  #: Splitting is complete: `units` will not grow.
    units: int  #: Units split so far.
    pending: int  #: Units neither done nor quarantined.
    done: int  #: Units committed.
    quarantined: int  #: Units quarantined.
    issued: int  #: Units published and not claimed yet.
    leased: int  #: Units that an attempt works on.
    suspects: int  #: Units that lost two workers and run last, alone.
    totals: Mapping[str, int]  #: Sums over the committed units.
    live: Live
    created_ms: int
    started_ms: int | None  #: First claim.
    finished_ms: int | None
    now_ms: int  #: The server's clock at this moment.
    last_error: str | None  #: The error of the job, or of the unit last released with blame.
    #: Why a FAILED or CANCELLED job ended (see `ringhaul.causes`); empty: not known.
    cause: str = ""
    error_ms: int | None = None  #: When a unit was last released with blame.
    error_done: int = 0  #: Units that were committed at `error_ms`.
    #: Why a worker declined a unit while the job had none in progress; None after the next claim.
    declined: str | None = None
    declined_ms: int | None = None  #: When the worker declined.
    #: Why a unit in progress makes no progress; repeated as long as that lasts.
    trouble: str | None = None
    trouble_ms: int | None = None  #: When the trouble was last reported.
    failing: int = 0  #: Units that were released with blame and not committed since.
    fails: int = 0  #: How often they were, in total.
    oldest_issued_ms: int | None = None  #: Since when the oldest of the `issued` waits for a claim.
    progress_ms: int | None = None  #: When units were last split or done, or rows were reported.
    paused_ms: int | None = None  #: Since when the job is paused.
    paused_total_ms: int = 0  #: All earlier pauses in total.
    idle_ms: int = 0  #: Time between earlier ends of the job and its resumes, in total.
    pace: Pace = NO_PACE
    priority: str = NORMAL
    published: bool = False  #: The manifest or the result of the job was written or printed.
    labels: Mapping[str, str]  #: Set by the producer.
    #: Inconsistencies found; checked where jobs are listed, see `Reader.find_damage`.
    damage: tuple[str, ...] = ()

    @property
    def state_name(self) -> str:
        """The state for people and programs, where PAUSED and DAMAGED count as states."""
        if self.damage:
            return DAMAGED
        return "PAUSED" if self.paused else self.state.value

    @property
    def paused(self) -> bool:
        """Whether the job is RUNNING, and paused."""
        return self.paused_ms is not None

    @property
    def stands_still(self) -> bool:
        """Whether the job runs without a commit since the last release with blame."""
        going_on = not (self.finished or self.paused)
        return going_on and self.error_ms is not None and self.done <= self.error_done

    @property
    def still_s(self) -> float:
        """Seconds since the job last made progress; 0 if it is paused or has ended."""
        if self.finished or self.paused:
            return 0.0
        return max(self.now_ms - max(self.progress_ms or 0, self.created_ms), 0) / 1000

    @property
    def worked_s(self) -> float:
        """`elapsed_s` without the pauses."""
        paused_ms = self.paused_total_ms
        if self.paused_ms is not None:
            paused_ms += self.now_ms - self.paused_ms
        return max(self.elapsed_s - paused_ms / 1000, 0.0)

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first claim to the end, or to this moment.

        The time between an end and a resume does not count.
        """
        if self.started_ms is None:
            return 0.0
        return ((self.finished_ms or self.now_ms) - self.started_ms - self.idle_ms) / 1000

    @property
    def finished(self) -> bool:
        """Whether the job has ended; a resumable job may still be winding down while `leased`."""
        return self.state is not JobState.RUNNING


@dataclass(frozen=True, kw_only=True)
class UnitAtWork:
    """A unit that an attempt works on."""

    job: str
    unit: int
    worker: str  #: Worker name and process id: `celery@host1:4711`.
    attempt: int  #: 1-based
    seconds: float  #: Since it was claimed.
    live: Live

    @property
    def host(self) -> str:
        """The worker's host."""
        return self.worker.rpartition(":")[0].rpartition("@")[2]


def unreadable(job: str, damage: tuple[str, ...]) -> JobStatus:
    """Return the list entry of a job that cannot be read."""
    return JobStatus(
        job=job,
        state=JobState.FAILED,
        epoch=0,
        sealed=False,
        units=0,
        pending=0,
        done=0,
        quarantined=0,
        issued=0,
        leased=0,
        suspects=0,
        totals={},
        live=Live(),
        created_ms=0,
        started_ms=None,
        finished_ms=None,
        now_ms=0,
        last_error=None,
        labels={},
        damage=damage,
    )


def sum_live(entries: Iterable[bytes]) -> Live:
    """Return the sum of packed figures of several attempts."""
    rows = rejected = size_bytes = in_flight = 0
    for entry in entries:
        figures = entry.split(b",")
        rows += int(figures[0])
        rejected += int(figures[1])
        size_bytes += int(figures[2])
        in_flight += int(figures[3]) if len(figures) > 3 else 0
    return Live(rows=rows, rejected=rejected, bytes=size_bytes, in_flight=in_flight)
