"""The units of a job as reports and pages show them: by host, the slowest units, the failed units,
and when each ran.

What is shown is bounded, however many units there are. Results never change, so that `UnitFacts`
of a job may be kept from one look to the next, which then reads only what is new.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import NamedTuple

from producer.figures.timeline import Bar
from producer.figures.unit_place import UnitPlaces
from ringhaul.ledger import keys
from ringhaul.ledger.job_status import JobStatus, UnitAtWork
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.records.unit import UnitResult
from ringhaul.scan.result import ReadResult
from ringhaul.statements.result import StatementResult

LISTED_MAX = 10
#: Bars of a timeline. If there are more units, each stretch of time sums up its units.
BARS_MAX = 400
LANES_MAX = 24
HOSTS_MAX = 50
#: Into how many stretches the time of each lane is cut, if its units are too many to be drawn one
#: by one: as many as keep within `BARS_MAX`, where neighbours of one height are one bar.
_STRETCHES = (120, 80, 60, 40, 30, BARS_MAX // LANES_MAX)
#: Heights of bars are rounded to these steps.
_STEPS = 10


class UnitFact(NamedTuple):
    """What is known of a committed unit."""

    unit: int
    worker: str  #: host:pid
    elapsed_ms: int
    attempt: int
    rows: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class UnitLine:
    """A unit in a list."""

    unit: int
    state: str  #: done, running, waiting or given up
    attempts: int
    seconds: float | None = None  #: Time of the attempt that counted or that runs.
    rows: int | None = None
    worker: str = ""  #: host:pid
    place: str = ""  #: File and bytes, or token ranges.
    note: str = ""  #: Why it failed, if that is known.


@dataclass(frozen=True, kw_only=True)
class HostWork:
    """What one host did."""

    host: str
    processes: int
    units: int
    rows: int
    rejected: int
    seconds: float  #: Time of all its units together.
    repeated: int  #: Units that took more than one attempt.

    @property
    def rows_per_s(self) -> float:
        """Rows per second and process, while it worked."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """When units ran. Empty if the ledger does not know: older versions kept no times."""

    lanes: tuple[str, ...] = ()  #: Processes, or hosts if there are too many.
    bars: tuple[Bar, ...] = ()
    seconds: float = 0.0  #: Time from the job's creation to its end, or to now.
    units: int = 0  #: Units whose times are known.
    summed: bool = False  #: Bars are sums of several units.


@dataclass
class UnitFacts:
    """The committed units of one job, read so far; see `read_facts`."""

    job: str = ""
    created_ms: int = 0
    by_bucket: dict[int, list[UnitFact]] = field(default_factory=dict)

    def all(self) -> Iterable[UnitFact]:
        """Yield the facts of all units in order."""
        for bucket in sorted(self.by_bucket):
            yield from self.by_bucket[bucket]


def read_facts(ledger: Ledger, status: JobStatus, known: UnitFacts | None = None) -> UnitFacts:
    """Return the facts of all committed units. `known`: facts from an earlier look, which are
    extended, or dropped if they are about another job."""
    facts = UnitFacts() if known is None else known
    if (facts.job, facts.created_ms) != (status.job, status.created_ms):
        facts.job, facts.created_ms = status.job, status.created_ms
        facts.by_bucket.clear()
    read = _reader_of(JobKind.of_labels(status.labels))
    whole = {n for n, found in facts.by_bucket.items() if len(found) == keys.UNITS_PER_BUCKET}
    fresh: dict[int, list[UnitFact]] = {}
    for unit, packed in ledger.results(status.job, exclude=whole):
        fresh.setdefault(unit // keys.UNITS_PER_BUCKET, []).append(read(unit, packed))
    facts.by_bucket.update(fresh)
    return facts


class _Reader(NamedTuple):
    """Reads what a look needs out of a packed result, which has much more."""

    fields: int
    elapsed: int
    attempt: int
    rows: int
    rejected: int

    def __call__(self, unit: int, packed: str) -> UnitFact:
        values = packed.partition("\n")[0].split(",", self.fields - 1)
        return UnitFact(
            unit,
            values[-1],
            int(values[self.elapsed]),
            int(values[self.attempt]),
            int(values[self.rows]),
            int(values[self.rejected]),
        )


def _reader_of(kind: JobKind) -> _Reader:
    if kind.is_load:
        return _reader(UnitResult._fields, "written")
    if kind.runs_statements:
        return _reader(StatementResult._fields, "answered")
    return _reader(ReadResult._fields, "rows")


def _reader(names: Sequence[str], rows: str) -> _Reader:
    # The worker is the last value of the line; what may follow is on another line.
    at = {name: number for number, name in enumerate(names)}
    return _Reader(at["worker"] + 1, at["elapsed_ms"], at["attempt"], at[rows], at["rejected"])


def host_of(worker: str) -> str:
    """Return the host of `host:pid` or of `celery@host:pid`."""
    return worker.rpartition(":")[0].rpartition("@")[2] or worker


def host_work(facts: UnitFacts) -> tuple[HostWork, ...]:
    """Return what each host did, the host with the most units first."""
    sums: dict[str, list[int]] = {}  # figures of each worker process
    for fact in facts.all():
        figures = sums.setdefault(fact.worker, [0, 0, 0, 0, 0])
        figures[0] += 1
        figures[1] += fact.rows
        figures[2] += fact.rejected
        figures[3] += fact.elapsed_ms
        figures[4] += fact.attempt > 1
    hosts: dict[str, list[list[int]]] = {}
    for worker, figures in sums.items():
        hosts.setdefault(host_of(worker), []).append(figures)
    work = [
        HostWork(
            host=host,
            processes=len(processes),
            units=sum(one[0] for one in processes),
            rows=sum(one[1] for one in processes),
            rejected=sum(one[2] for one in processes),
            seconds=sum(one[3] for one in processes) / 1000,
            repeated=sum(one[4] for one in processes),
        )
        for host, processes in hosts.items()
    ]
    return tuple(sorted(work, key=lambda one: (-one.units, one.host))[:HOSTS_MAX])


def slowest_units(
    ledger: Ledger,
    status: JobStatus,
    facts: UnitFacts,
    at_work: Sequence[UnitAtWork],
    places: UnitPlaces,
) -> tuple[UnitLine, ...]:
    """Return the units that took longest, running ones included, the slowest first."""
    lines = [
        *(_done(fact) for fact in nlargest(LISTED_MAX, facts.all(), key=lambda f: f.elapsed_ms)),
        *(_running(unit) for unit in at_work[:LISTED_MAX]),
    ]
    lines.sort(key=lambda line: -(line.seconds or 0))
    return _placed(ledger, status.job, lines[:LISTED_MAX], places)


def failing_units(
    ledger: Ledger,
    status: JobStatus,
    facts: UnitFacts,
    at_work: Sequence[UnitAtWork],
    places: UnitPlaces,
    notes: Mapping[int, str],
) -> tuple[UnitLine, ...]:
    """Return the first units that were given up, that failed, and that took more than one attempt.

    `notes`: the reasons, as far as known, by unit.
    """
    lines: dict[int, UnitLine] = {}
    if status.quarantined:
        for unit, reason in ledger.quarantined_units(status.job).items():
            lines[unit] = UnitLine(unit=unit, state="given up", attempts=0, note=reason)
    running = {one.unit: one for one in at_work}
    if status.failing:
        for unit, fails in ledger.unit_fails(status.job).items():
            waiting = UnitLine(unit=unit, state="waiting", attempts=fails)
            lines.setdefault(unit, _running(running[unit]) if unit in running else waiting)
    for one in at_work:
        if one.attempt > 1:
            lines.setdefault(one.unit, _running(one))
    for fact in facts.all():
        if fact.attempt > 1:
            lines.setdefault(fact.unit, _done(fact))
    chosen = [
        line if line.note else replace(line, note=notes.get(line.unit, ""))
        for line in list(lines.values())[:LISTED_MAX]
    ]
    return _placed(ledger, status.job, chosen, places)


def timeline_of(
    facts: UnitFacts, ends_ms: Sequence[int], at_work: Sequence[UnitAtWork], seconds: float
) -> Timeline:
    """Return when the units ran. `ends_ms`: see `Reader.unit_ends`; `seconds`: to the job's end."""
    spans = [
        _Span(fact.worker, max(end - fact.elapsed_ms, 0) / 1000, end / 1000, fact.attempt > 1)
        for fact in facts.all()
        if (end := ends_ms[fact.unit] if fact.unit < len(ends_ms) else 0)
    ]
    if not spans:
        return Timeline()
    spans += [
        _Span(unit.worker.rpartition("@")[2], max(seconds - unit.seconds, 0), seconds, False)
        for unit in at_work
    ]
    workers = sorted({span.worker for span in spans}, key=lambda name: name.rpartition(":"))
    names = {worker: worker for worker in workers}
    if len(workers) > LANES_MAX:
        names = {worker: host_of(worker) for worker in workers}
    lanes = list(dict.fromkeys(names.values()))
    if len(lanes) > LANES_MAX:
        kept = lanes[: LANES_MAX - 1]
        names = {worker: lane if lane in kept else "others" for worker, lane in names.items()}
        lanes = [*kept, "others"]
    lane_of = {worker: lanes.index(lane) for worker, lane in names.items()}
    processes = [list(lane_of.values()).count(lane) for lane in range(len(lanes))]
    seconds = max(seconds, max(span.end_s for span in spans))
    summed = len(spans) > BARS_MAX or len(lanes) < len(workers)
    if summed:
        bars = []
        for stretches in _STRETCHES:
            bars = _summed(spans, lane_of, processes, seconds, stretches)
            if len(bars) <= BARS_MAX:
                break
    else:
        bars = [
            Bar(lane=lane_of[s.worker], start_s=s.start_s, end_s=s.end_s, repeated=s.repeated)
            for s in spans
        ]
    return Timeline(
        lanes=tuple(lanes), bars=tuple(bars), seconds=seconds, units=len(spans), summed=summed
    )


class _Span(NamedTuple):
    worker: str
    start_s: float
    end_s: float
    repeated: bool


def _summed(
    spans: Iterable[_Span],
    lane_of: Mapping[str, int],
    processes: Sequence[int],
    seconds: float,
    stretches: int,
) -> list[Bar]:
    """Return a bar for each lane and stretch of time: the share in which its processes worked."""
    length_s = seconds / stretches
    busy = [[0.0] * stretches for _ in processes]
    repeated: set[tuple[int, int]] = set()
    for span in spans:
        worker, start_s, end_s, again = span
        lane, first, last = lane_of[worker], int(start_s / length_s), int(end_s / length_s)
        if last >= stretches:  # the very end
            last, first = stretches - 1, min(first, stretches - 1)
        row = busy[lane]
        if first == last:  # nearly all: this runs for each of 50,000 units
            row[last] += end_s - start_s
        else:
            row[first] += (first + 1) * length_s - start_s
            row[last] += end_s - last * length_s
            for at in range(first + 1, last):
                row[at] += length_s
        if again:
            repeated.add((lane, last))
    bars: list[Bar] = []
    for lane, row in enumerate(busy):
        for at, busy_s in enumerate(row):
            share = min(busy_s / (length_s * processes[lane]), 1.0)
            if share <= 0:
                continue
            share = max(math.ceil(share * _STEPS - 0.25), 1) / _STEPS
            bar = Bar(
                lane=lane,
                start_s=at * length_s,
                end_s=(at + 1) * length_s,
                share=share,
                repeated=(lane, at) in repeated,
            )
            before = bars[-1] if bars else None
            if before and _continues(before, bar):
                bars[-1] = Bar(
                    lane=lane,
                    start_s=before.start_s,
                    end_s=bar.end_s,
                    share=share,
                    repeated=bar.repeated,
                )
            else:
                bars.append(bar)
    return bars


def _continues(before: Bar, bar: Bar) -> bool:
    # A mark is at the end of its bar.
    alike = (before.lane, before.share) == (bar.lane, bar.share) and not before.repeated
    return alike and abs(before.end_s - bar.start_s) < 1e-6


def _placed(
    ledger: Ledger, job: str, lines: Sequence[UnitLine], places: UnitPlaces
) -> tuple[UnitLine, ...]:
    return tuple(
        replace(line, place=places.place(ledger.unit_spec(job, line.unit))) for line in lines
    )


def _done(fact: UnitFact) -> UnitLine:
    return UnitLine(
        unit=fact.unit,
        state="done",
        attempts=fact.attempt,
        seconds=fact.elapsed_ms / 1000,
        rows=fact.rows,
        worker=fact.worker,
    )


def _running(unit: UnitAtWork) -> UnitLine:
    return UnitLine(
        unit=unit.unit,
        state="running",
        attempts=unit.attempt,
        seconds=unit.seconds,
        rows=unit.live.rows,
        worker=unit.worker.rpartition("@")[2],
    )
