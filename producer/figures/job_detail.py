"""All that a report and a page show of one job, read from the ledger in one look.

Everything is bounded, however many units, rejects or hosts there are. Data of rows is in it only if
the caller requests it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from producer.figures.job_settings import Setting, environment, job_command, job_settings
from producer.figures.outcome import Closing, exit_code, unfinished
from producer.figures.reject_groups import RejectGroups, group_rejects, rejects_of
from producer.figures.snapshot import Snapshot
from producer.figures.speed import recent_snapshot
from producer.figures.summary import read_closing
from producer.figures.unit_detail import (
    HostWork,
    Timeline,
    UnitFacts,
    UnitLine,
    failing_units,
    host_work,
    read_facts,
    slowest_units,
    timeline_of,
)
from producer.figures.unit_place import UnitPlaces
from ringhaul.dataplane.latency import percentile_ms
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.connection import LedgerRefused
from ringhaul.ledger.fleet import look_at_fleet
from ringhaul.ledger.history import EventKind, History, JobEvent, Sample
from ringhaul.ledger.job_status import DAMAGED, JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.output.unloadable_rows import SUCH_AS
from tasks.kinds import Job, job_of_spec

#: Rejects that a page groups; a report groups all of them.
REJECTS_READ_MAX = 10_000
_NEXT = " next "
_OF_UNITS = (EventKind.RETRIED, EventKind.RELEASED, EventKind.GIVEN_UP)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the job's summary, by its name in `ringhaul status --json`."""

    name: str
    value: int | float | str | None


@dataclass(frozen=True, kw_only=True)
class JobEnd:
    """The state or the end of a job, as its command reports it."""

    exit_code: int
    figures: tuple[Figure, ...]
    verdict: tuple[str, ...]  #: Lines for people.
    next_commands: tuple[str, ...]  #: What to run next, if there is anything to do.


@dataclass(frozen=True, kw_only=True)
class JobDetail:
    """A job in detail."""

    job: str
    kind: str
    table: str
    status: JobStatus
    snapshot: Snapshot
    end: JobEnd
    samples: tuple[Sample, ...]
    events: tuple[JobEvent, ...]
    rejects: RejectGroups
    slowest: tuple[UnitLine, ...]
    failing: tuple[UnitLine, ...]
    hosts: tuple[HostWork, ...]
    timeline: Timeline
    command: str  #: The command that made the job, without secrets.
    settings: tuple[Setting, ...]
    environment: tuple[Setting, ...]
    show_data: bool  #: Rejects have their records and whole reasons.
    units_read: bool  #: False: `rejects` and what is about units and hosts are empty.
    at_ms: int  #: Time of the look, by the ledger server's clock.


@dataclass
class Known:
    """What a program that looks at one job again and again keeps between the looks."""

    facts: UnitFacts = field(default_factory=UnitFacts)
    spec: str = ""
    job: Job | None = None
    server: str = ""  #: Name and version of the ledger's server.
    closing: Closing | None = None  #: Closing of a job whose figures never change again.
    closing_of: _Moment | None = None
    rejects: RejectGroups | None = None
    rejects_of: tuple[str, int, int, int, int, bool, int | None] | None = None
    units: _Units | None = None  #: Units of an ended job; `units_of`: when they were read.
    units_of: _Moment | None = None


class _Moment(NamedTuple):
    """A result about an ended job that cannot change any more."""

    job: str
    created_ms: int
    epoch: int
    finished_ms: int | None
    done: int

    @classmethod
    def of(cls, status: JobStatus) -> _Moment:
        return cls(status.job, status.created_ms, status.epoch, status.finished_ms, status.done)


class _Units(NamedTuple):
    """What a look finds out about units."""

    slowest: tuple[UnitLine, ...]
    failing: tuple[UnitLine, ...]
    hosts: tuple[HostWork, ...]
    timeline: Timeline


def look_at_job(
    ledger: Ledger,
    job: str,
    *,
    show_data: bool,
    rejects_max: int | None = REJECTS_READ_MAX,
    closing: Closing | None = None,
    whole: bool = True,
    units: bool = True,
    known: Known | None = None,
) -> JobDetail:
    """Return a job in detail.

    `show_data`: whether the sample rejects have their records and whole reasons. `rejects_max`:
    rejects to group, None for all. `closing`: the job's closing if the caller has it. `whole`:
    whether to compute it otherwise, by a second look at all results and rejects; without a closing
    `end` has no figures. `units`: whether to read facts of units, hosts and rejects, by a look at
    all results. `known`: facts kept from earlier looks, which this look updates.

    Raises JobMissing; JobDamaged if Redis lost part of the job.
    """
    known = known or Known()
    status = ledger.status(job)
    spec = ledger.job_spec(job)
    if known.job is None or known.spec != spec:
        known.job, known.spec = job_of_spec(job, spec), spec
    if not known.server:
        known.server = _server(ledger)
    if whole and closing is None:
        closing = closing_of(ledger, status, known)
    if closing is not None and closing.data.get("state") == DAMAGED:
        raise JobDamaged(job, closing.data.get("damage", ()))
    history = History(ledger.caller)
    samples, events = history.samples(job), history.events(job)
    work = _units(ledger, status, events, known) if units else _Units((), (), (), Timeline())
    rejects = RejectGroups(whole=False)
    if units:
        rejects = _rejects(ledger, status, known, show_data=show_data, rejects_max=rejects_max)
    return JobDetail(
        job=job,
        kind=status.labels.get("kind", "load"),
        table=status.labels.get("table", ""),
        status=status,
        snapshot=_snapshot(ledger, status, samples),
        end=_end(status, closing, show_data=show_data),
        samples=tuple(samples),
        events=tuple(events),
        rejects=rejects,
        slowest=work.slowest,
        failing=work.failing,
        hosts=work.hosts,
        timeline=work.timeline,
        command=job_command(status),
        settings=job_settings(status, known.job, ledger.error_limit(job)),
        environment=environment(known.server),
        show_data=show_data,
        units_read=units,
        at_ms=status.now_ms,
    )


def _units(ledger: Ledger, status: JobStatus, events: Sequence[JobEvent], known: Known) -> _Units:
    of = _Moment.of(status)
    if known.units is not None and known.units_of == of:
        return known.units
    assert known.job is not None
    facts = read_facts(ledger, status, known.facts)
    at_work = ledger.units_at_work(status.job) if status.leased else []
    places = UnitPlaces(status.job, known.job)
    notes = {e.unit: e.text for e in events if e.unit is not None and e.kind in _OF_UNITS}
    seconds = max(((status.finished_ms or status.now_ms) - status.created_ms) / 1000, 0.0)
    units = _Units(
        slowest_units(ledger, status, facts, at_work, places),
        failing_units(ledger, status, facts, at_work, places, notes),
        host_work(facts),
        timeline_of(facts, ledger.unit_ends(status.job), at_work, seconds),
    )
    # While units run, or still end, their figures change with each look.
    known.units = units if status.finished and not status.leased else None
    known.units_of = of
    return units


def _rejects(
    ledger: Ledger, status: JobStatus, known: Known, *, show_data: bool, rejects_max: int | None
) -> RejectGroups:
    stopped = status.live.rejected if status.finished else 0  # rejects of a unit that is not done
    of = (
        *(status.job, status.created_ms, status.epoch, status.done, stopped),
        *(show_data, rejects_max),
    )
    if known.rejects is None or known.rejects_of != of:
        found = rejects_of(ledger, status)
        known.rejects = group_rejects(
            found, status.job, show_data=show_data, rejects_max=rejects_max
        )
        known.rejects_of = of
    return known.rejects


def closing_of(ledger: Ledger, status: JobStatus, known: Known) -> Closing:
    """Return a job's closing, from an earlier look if it cannot have changed since."""
    of = _Moment.of(status)
    if known.closing is None or known.closing_of != of:
        closing = read_closing(ledger, status.job)
        if not status.finished or status.leased:  # a unit that is still ending may be committed
            return closing
        known.closing, known.closing_of = closing, of
    return known.closing


def _snapshot(ledger: Ledger, status: JobStatus, samples: list[Sample]) -> Snapshot:
    """Return the figures of this moment."""
    last = samples[-1] if samples else Sample(at_ms=status.now_ms)
    if status.finished or last.p99_ms is None:
        counts = {int(index): count for index, count in ledger.latencies(status.job).items()}
        p50_ms, p99_ms = percentile_ms(counts, 0.50), percentile_ms(counts, 0.99)
    else:
        p50_ms, p99_ms = last.p50_ms, last.p99_ms
    fleet = None if status.finished else look_at_fleet(ledger.caller)
    return recent_snapshot(status, samples, p50_ms=p50_ms, p99_ms=p99_ms, fleet=fleet)


def _end(status: JobStatus, closing: Closing | None, *, show_data: bool) -> JobEnd:
    if closing is None:
        lines = [f" {status.state_name.lower()}"]
        if not status.finished:
            lines = unfinished(status, f"{status.done:,} of {status.units:,} units are done")
        elif status.last_error:
            lines.append(f" {status.last_error}")
        code, figures = exit_code(status, interrupted=False), _figures(None)
    else:
        lines, code, figures = list(closing.verdict), closing.exit_code, _figures(closing)
    if not show_data:
        lines = [line.partition(SUCH_AS)[0] for line in lines]  # the key of a row
    return JobEnd(
        exit_code=code,
        figures=figures,
        verdict=tuple(line.strip() for line in lines if not line.startswith(_NEXT)),
        next_commands=tuple(
            line.removeprefix(_NEXT).strip() for line in lines if line.startswith(_NEXT)
        ),
    )


def _figures(closing: Closing | None) -> tuple[Figure, ...]:
    """Return the single values of the summary; lists and tables are shown in their own places."""
    if closing is None:
        return ()
    return tuple(
        Figure(name=name, value=value)
        for name, value in closing.data.items()
        if name != "message_type" and (value is None or isinstance(value, (int, float, str)))
        if not isinstance(value, float) or math.isfinite(value)
    )


def _server(ledger: Ledger) -> str:
    """Return name and version of the ledger's server; empty if it does not say."""
    try:
        facts = ledger.caller.command("INFO", "server")
    except LedgerRefused:  # this user may not ask
        return ""
    name = "Valkey" if "valkey_version" in facts else "Redis"
    return f"{name} {facts.get('valkey_version') or facts.get('redis_version', '')}"
