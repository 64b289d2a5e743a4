"""What one scrape finds: plain figures, without Redis and without Prometheus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from producer.figures.standing import Condition
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.schedules import NO_HEALTH, Health
from ringhaul.ledger.server_checks import ServerFacts
from ringhaul.ledger.totals import KindTotals
from ringhaul.ledger.workers import Worker
from ringhaul.schedule.runs import Run


@dataclass(frozen=True, kw_only=True)
class ScheduleFigures:
    """A schedule of the file, and where it stands."""

    name: str
    paused: bool = False
    running: bool = False  #: A run has not ended.
    #: The first due time that is not settled; one in the past is overdue. None: no beat has looked
    #: at the schedule, it is paused, or it waits for files.
    next_due_ms: int | None = None
    last: Run | None = None  #: The newest run, or due time that was passed over.
    health: Health = NO_HEALTH  #: How its runs ended lately.


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The ledger at one moment."""

    now_ms: int = 0  #: The ledger server's clock.
    server: ServerFacts
    jobs: Mapping[str, int] = field(default_factory=dict)  #: state -> jobs that are kept
    unended: Sequence[JobStatus] = ()  #: Running or paused, or damaged.
    #: Running jobs that get no work done, by why.
    conditions: Mapping[Condition, int] = field(default_factory=dict)
    totals: Mapping[JobKind, KindTotals] = field(default_factory=dict)
    workers: Sequence[Worker] = ()
    #: Beats that are alive, and why they cannot read their schedule files; empty if they can.
    beats: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)  #: queue -> messages in it
    schedules: Sequence[ScheduleFigures] | None = None  #: None: there is no schedule file here.


class NeverLess:
    """Makes sums that never get smaller, as Prometheus expects of counters.

    A server that lost the last second of its log, or all of it, holds smaller sums than before. To
    Prometheus that would look like a restart from 0, and like as many new rows as there are in all.
    So only what a sum grows by is added to what was shown last.
    """

    def __init__(self) -> None:
        self._read: dict[tuple[object, ...], int] = {}
        self._shown: dict[tuple[object, ...], int] = {}

    def totals(self, read: Mapping[JobKind, KindTotals]) -> dict[JobKind, KindTotals]:
        """Return the sums to show, given the sums `read` from the ledger."""
        flat: dict[tuple[object, ...], int] = {
            (kind, part, name): number
            for kind, totals in read.items()
            for part in ("figures", "ended", "latencies")
            for name, number in getattr(totals, part).items()
        }
        for key in self._shown.keys() | flat.keys():
            number = flat.get(key, 0)
            more = number - self._read.get(key, 0)
            self._shown[key] = self._shown.get(key, 0) + max(more, 0)
            self._read[key] = number
        parts: dict[JobKind, dict[str, dict[object, int]]] = {}
        for (kind, part, name), number in self._shown.items():
            assert isinstance(kind, JobKind) and isinstance(part, str)
            parts.setdefault(kind, {}).setdefault(part, {})[name] = number
        return {kind: KindTotals(**found) for kind, found in parts.items()}  # type: ignore[arg-type]
