"""Sums over all jobs, even forgotten jobs, and the number of jobs in each state: for metrics.

The scripts add to the sums where they change a job. So a sum never gets smaller when a job is
forgotten after `keys.JOB_TTL_S`, and the cost of reading the sums does not grow with the number of
jobs. They begin with the first job of this version. No decision depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.kinds import KINDS, JobKind

#: The newest jobs that `count_job_states` looks at: some 20 ms of the server's time.
JOBS_COUNTED_MAX = 10_000


@dataclass(frozen=True, kw_only=True)
class KindTotals:
    """Sums over all jobs of one kind."""

    figures: Mapping[str, int] = field(default_factory=dict)  #: by name, see `FIGURES`
    ended: Mapping[str, int] = field(default_factory=dict)  #: state -> how often a job ended so
    latencies: Mapping[int, int] = field(default_factory=dict)  #: bucket (latency.py) -> requests


#: What the scripts add up.
FIGURES = (
    "rows",  # in committed units, like the following four figures
    "rejected",
    "bytes",
    "retries",
    "streamed",  # bytes of SSTables, to all nodes
    "units",  # committed
    "failed",  # units given back because of an error
    "lost",  # units whose process or host was lost
    "quarantined",  # units given up
    "created",  # jobs
    "backoffs",  # nodes left alone for a while by a unit
    "shrinks",  # units in which the window of unanswered requests shrank
)


def read_totals(caller: Caller) -> dict[JobKind, KindTotals]:
    """Return the sums of each kind of job that there was. Raises as `Caller.command` does.

    Fields of other kinds or figures, which a later version may add up, are left out.
    """
    found: dict[bytes, bytes] = caller.command("HGETALL", keys.TOTALS)
    figures: dict[JobKind, dict[str, int]] = {}
    ended: dict[JobKind, dict[str, int]] = {}
    latencies: dict[JobKind, dict[int, int]] = {}
    for name, number in found.items():
        kind_name, _, figure = name.decode(errors="replace").partition(":")
        if kind_name not in KINDS:
            continue
        kind = JobKind(kind_name)
        figure, _, detail = figure.partition(":")
        if figure in FIGURES and not detail:
            figures.setdefault(kind, {})[figure] = int(number)
        elif figure == "ended":
            ended.setdefault(kind, {})[detail] = int(number)
        elif figure == "latency" and detail.isdecimal():
            latencies.setdefault(kind, {})[int(detail)] = int(number)
    return {
        kind: KindTotals(
            figures=figures.get(kind, {}),
            ended=ended.get(kind, {}),
            latencies=latencies.get(kind, {}),
        )
        for kind in JobKind
        if kind in figures.keys() | ended.keys() | latencies.keys()
    }


def count_job_states(caller: Caller) -> dict[str, int]:
    """Return how many of the newest `JOBS_COUNTED_MAX` jobs are in each state, PAUSED among them.

    Raises as `Caller.script` does.
    """
    words = caller.reading_script("job_states", keys.JOBS, keys.META_PATTERN, JOBS_COUNTED_MAX)
    return {state.decode(): jobs for state, jobs in zip(words[::2], words[1::2], strict=True)}
