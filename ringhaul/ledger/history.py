"""The history of a job: samples of its figures over time, and the events of its life.

Pages, reports and `ringhaul status` read it; workers and commands write it. Both lists are
bounded, see `keys.SAMPLES_MAX` and `keys.EVENTS_MAX`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.reading import reading

#: Who changed a job, in its events. A page says "page"; a schedule "schedule NAME".
BY_COMMAND = "command"
BY_PAGE = "page"
#: Samples to compute the speed of a running job from: half a minute's worth, and some to spare.
RECENT_SAMPLES = 8


class EventKind(StrEnum):
    """What happened to a job."""

    CREATED = "created"
    SPLIT = "split"  #: All units are known.
    FIRST_UNIT = "first unit"
    PAUSED = "paused"
    RESUMED = "resumed"
    THROTTLED = "throttled"
    PRIORITY = "priority"
    RETRIED = "unit retried"
    RELEASED = "unit released"
    GIVEN_UP = "unit given up"
    HOST_JOINED = "host joined"
    HOST_LOST = "host lost"
    WINDOW_SHRUNK = "window shrunk"
    NODE_REST = "node left alone"
    NODE_MISSED = "node lacks rows"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """An event in the life of a job."""

    at_ms: int  #: The ledger server's clock.
    kind: EventKind
    text: str = ""  #: Details for people: a reason, a limit, a state. Never data of rows.
    by: str = ""  #: Who: "command", "page", "schedule NAME", or a worker's host. Empty: several.
    unit: int | None = None  #: None: several, or the event is not about a unit.
    count: int = 1  #: How often it happened without anything else in between.
    last_ms: int = 0  #: When it last happened; `at_ms` is the first time.

    def __post_init__(self) -> None:
        object.__setattr__(self, "last_ms", max(self.last_ms, self.at_ms))


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Figures of a job at one moment. Counts are sums since the job's start, running units
    included, so a retried unit may take some back."""

    at_ms: int  #: The ledger server's clock.
    rows: int = 0
    rejected: int = 0
    bytes: int = 0
    retries: int = 0
    units: int = 0  #: Units split so far.
    units_done: int = 0
    leased: int = 0  #: Units that an attempt works on.
    in_flight: int = 0  #: Unanswered requests of all running units.
    p50_ms: float | None = None  #: Latencies of requests answered since the sample before.
    p99_ms: float | None = None
    #: Least number of workers of the job's queue: the first sample knows only the first unit's.
    workers: int = 0
    hosts: int = 0

    def to_json(self) -> str:
        """Return the sample as it is kept: a JSON list, in the order of the fields."""
        return json.dumps([getattr(self, name) for name in _SAMPLE_FIELDS], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the sample kept as `text`; fields that an older version did not keep have their
        defaults. Raises ValueError for anything else."""
        values = json.loads(text)
        if not isinstance(values, list):
            raise ValueError("a sample is a JSON list")
        return cls(**dict(zip(_SAMPLE_FIELDS, values, strict=False)))


@dataclass(frozen=True, kw_only=True)
class Crew:
    """The workers that consume a job's queue."""

    seen_ms: int  #: When that was found out, by the ledger server's clock.
    workers: int
    hosts: frozenset[str]


_SAMPLE_FIELDS = tuple(Sample.__dataclass_fields__)
#: A later version may note others, which are left out.
_KINDS = frozenset(EventKind)


class History:
    """The history of each job in the ledger.

    Methods raise as `Caller.script` does, and JobDamaged for what cannot be read.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def samples(self, job: str) -> list[Sample]:
        """Return the samples of `job`, the oldest first; none if it is unknown."""
        with reading(job):
            kept = self._caller.command("LRANGE", keys.job_key(job, "samples"), 0, -1)
            return [Sample.from_json(text.decode()) for text in kept]

    def recent(self, status: JobStatus) -> list[Sample]:
        """Return the last samples of a job that runs, the oldest first: its speed follows from
        them. None of a job that does not run, or is damaged."""
        if status.finished or status.paused or status.damage:
            return []
        with reading(status.job):
            key = keys.job_key(status.job, "samples")
            kept = self._caller.command("LRANGE", key, -RECENT_SAMPLES, -1)
            return [Sample.from_json(text.decode()) for text in kept]

    def events(self, job: str) -> list[JobEvent]:
        """Return the events of `job`, the oldest first; none if it is unknown."""
        with reading(job):
            kept = self._caller.command("LRANGE", keys.job_key(job, "events"), 0, -1)
            found = [json.loads(text.decode(errors="replace")) for text in kept]
            return [_event(fields) for fields in found if fields["kind"] in _KINDS]

    def note(
        self, job: str, kind: EventKind, *, text: str = "", by: str = "", unit: int | None = None
    ) -> None:
        """Add an event to the history of `job`, if it runs; for what no other script sees."""
        number = "" if unit is None else unit
        with reading(job):
            self._caller.script("note", keys.job_key(job, "meta"), kind.value, text, by, number)

    def wait_ms(self, job: str) -> int:
        """Return the ms until the next sample of `job` is due; negative if it does not run."""
        with reading(job):
            wait_ms: int = self._caller.script("sample", keys.job_key(job, "meta"))
        return wait_ms

    def sample(self, job: str, crew: Crew | None) -> int:
        """Sample the figures of `job` if it is time, and note which hosts came or went.

        `crew`: the workers that consume its queue; None: unknown, as for a paused job. Returns the
        ms until the next sample is due; negative if the job does not run.
        """
        seen: list[str | int] = ["", ""]
        if crew is not None:
            seen = [crew.seen_ms, crew.workers, *sorted(crew.hosts)]
        with reading(job):
            wait_ms: int = self._caller.script("sample", keys.job_key(job, "meta"), *seen)
        return wait_ms


def _event(fields: Mapping[str, Any]) -> JobEvent:
    return JobEvent(
        at_ms=int(fields["at_ms"]),
        kind=EventKind(fields["kind"]),
        text=str(fields.get("text", "")),
        by=str(fields.get("by", "")),
        unit=None if fields.get("unit") is None else int(fields["unit"]),
        count=int(fields.get("count", 1)),
        last_ms=int(fields.get("last_ms", fields["at_ms"])),
    )
