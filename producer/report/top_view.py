"""The view of `ringhaul top`, as tables for people and as a document for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import ConsoleDimensions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from producer.figures.snapshot import Snapshot
from producer.tables import GAP, Column, fit_columns, shorten
from producer.text import count_text, rate_text, time_text
from ringhaul.ledger.formats import Readable
from ringhaul.ledger.job_status import DAMAGED, JobStatus, UnitAtWork
from ringhaul.ledger.shares import NORMAL
from ringhaul.ledger.workers import Worker
from ringhaul.plain_text import as_line

#: How many units are shown if there is room.
UNITS_SHOWN = 10
HOSTS_SHOWN = 20
#: Lines other than rows: the head, and a blank line and column names for each of three tables.
LINES_BESIDE_ROWS = 1 + 3 * 2
_STYLES = {
    "RUNNING": "green",
    "WAITING": "yellow",
    "STALLED": "red",
    "PAUSED": "yellow",
    "COMPLETE": "",
    "PARTIAL": "yellow",
    "STOPPED": "red",
    "QUARANTINED": "red",
    "FAILED": "red",
    "CANCELLED": "dim",
    DAMAGED: "red",
}


@dataclass(frozen=True, kw_only=True)
class View:
    """A snapshot of all jobs, workers and running units."""

    jobs: Sequence[tuple[JobStatus, Snapshot]]  #: running ones first
    workers: Sequence[Worker]
    units: Sequence[UnitAtWork]  #: slowest first
    no_worker: str = ""  #: that no worker is alive, and what to do; empty: there are some


@dataclass(frozen=True)
class Host:
    """The workers of one host."""

    name: str
    slots: int
    busy: int
    #: (version of ringhaul, formats of jobs that it reads) of its workers, each once. Versions that
    #: did not tell are empty.
    versions: tuple[tuple[str, Readable], ...] = ()

    @property
    def version(self) -> str:
        """The versions for people."""
        return ", ".join(version or "unknown" for version, _ in self.versions)


def hosts_of(view: View) -> list[Host]:
    """Return the hosts by name. A host that works on units but sends no heartbeat has no slots."""
    busy = Counter(unit.host for unit in view.units)
    slots: Counter[str] = Counter()
    versions: dict[str, set[tuple[str, Readable]]] = {}
    for worker in view.workers:
        slots[worker.host] += worker.slots
        versions.setdefault(worker.host, set()).add((worker.version, worker.readable))
    return [
        Host(name, slots[name], busy[name], tuple(sorted(versions.get(name, ()))))
        for name in sorted(slots | busy)
    ]


def as_document(view: View) -> dict[str, Any]:
    """Return the view for programs. Fields are only ever added."""
    return {
        "message_type": "top",
        "jobs": [_job_document(status, snapshot) for status, snapshot in view.jobs],
        "hosts": [
            {
                "host": host.name,
                "slots": host.slots,
                "busy": host.busy,
                "versions": [
                    {"ringhaul": version or None, "job_formats": list(readable)}
                    for version, readable in host.versions
                ],
            }
            for host in hosts_of(view)
        ],
        "units": [
            {
                "job": unit.job,
                "unit": unit.unit,
                "host": unit.host,
                "worker": unit.worker,
                "seconds": unit.seconds,
                "attempt": unit.attempt,
                "rows": unit.live.rows,
            }
            for unit in view.units[:UNITS_SHOWN]
        ],
    }


def _job_document(status: JobStatus, snapshot: Snapshot) -> dict[str, Any]:
    figures = {
        "done": snapshot.share,
        "units": status.units,
        "units_done": status.done,
        "units_running": status.leased,
        "rows": snapshot.rows,
        "rejected": snapshot.rejected,
        "rows_per_s": snapshot.rows_per_s,
        "bytes_per_s": snapshot.bytes_per_s,
        "eta_s": snapshot.eta_s,
    }
    return {
        "job": status.job,
        "kind": status.labels.get("kind"),
        "table": status.labels.get("table"),
        "state": status.state_name,
        "condition": snapshot.condition,
        "standing": snapshot.standing,
        # The counts of a damaged job are not reliable.
        **(dict.fromkeys(figures) if status.damage else figures),
        "priority": status.priority,
        "limits": status.pace.to_json() if str(status.pace) else None,
        **({"damage": list(status.damage)} if status.damage else {}),
    }


def as_screen(
    view: View | None, *, size: ConsoleDimensions, away: str = "", whole: bool = False
) -> RenderableType:
    """Return the view for people. `size`: size of the screen, into which it is fitted unless
    `whole`; `away`: why the view is not current."""
    if view is None:
        return Text(away, style="red")
    hosts = hosts_of(view)
    slots = sum(host.slots for host in hosts)
    busy = sum(min(host.busy, host.slots) for host in hosts)  # units of the dead keep no slot
    states = Counter(status.state_name for status, _ in view.jobs)
    head = Text.assemble(
        ("ringhaul top", "bold"),
        f"   {states['RUNNING']} running, {states['PAUSED']} paused   "
        f"{busy:,} of {slots:,} slots busy   {count_text(len(hosts), 'host')}",
        (f"   {away}", "red") if away else "",
        no_wrap=True,
        overflow="ellipsis",
    )
    heads = [head]
    if view.no_worker:
        heads.append(Text(view.no_worker, style="red", no_wrap=True, overflow="ellipsis"))
    hosts = hosts[:HOSTS_SHOWN]
    units = view.units[:UNITS_SHOWN]
    if not whole:
        beside = LINES_BESIDE_ROWS + len(heads) - 1 + len(view.jobs) + len(hosts)
        units = units[: max(1, size.height - beside)]
    tables = (_jobs(view), _hosts(hosts), _units(units))
    return Group(*heads, *(_laid_out(*table, width=size.width) for table in tables))


_Rows = Sequence[Sequence[str | Text]]


def _laid_out(columns: Sequence[Column], rows: _Rows, *, width: int) -> RenderableType:
    """Return a blank line and a borderless table that fits `width`."""
    # A plain string would be read as markup.
    texts = [[Text(as_line(one)) if isinstance(one, str) else one for one in row] for row in rows]
    widths = fit_columns(columns, [[str(cell) for cell in row] for row in texts], width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for i, wide in widths.items():
        table.add_column(
            columns[i].name,
            justify="right" if columns[i].right else "left",
            width=wide,
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in texts:
        cells = [
            Text(shorten(str(row[i]), wide, ends=columns[i].ends), style=row[i].style)
            for i, wide in widths.items()
        ]
        table.add_row(*cells)
    return Group("", table)


def _jobs(view: View) -> tuple[Sequence[Column], _Rows]:
    prioritized = any(status.priority != NORMAL for status, _ in view.jobs)
    limited = any(str(status.pace) for status, _ in view.jobs)
    columns = (
        Column("JOB", short=12, ends=True),
        Column("VERB", goes=4),
        Column("TARGET", goes=5, short=12, ends=True),
        Column("STATE"),
        Column("DONE", right=True),
        Column("ROWS", goes=2, right=True),
        Column("ROWS/S", right=True),
        Column("ETA", right=True),
        Column("REJECTED", goes=1, right=True),
        # Most jobs have neither. Then these columns do not distinguish jobs, and are left out.
        *([Column("PRIORITY", goes=6)] if prioritized else []),
        *([Column("LIMITS", short=12)] if limited else []),
    )
    rows: _Rows = [
        (
            status.job,
            status.labels.get("kind", "-"),
            status.labels.get("table", "-"),
            Text(state := _state(status, snapshot), style=_STYLES[state]),
            *(["-"] * 5 if status.damage else _figures(snapshot)),
            *([status.priority] if prioritized else []),
            *([str(status.pace) or "-"] if limited else []),
        )
        for status, snapshot in view.jobs
    ]
    return columns, rows


def _state(status: JobStatus, snapshot: Snapshot) -> str:
    return status.state_name if status.damage else snapshot.shown_state


def _figures(snapshot: Snapshot) -> Sequence[str]:
    return (
        f"{snapshot.share:.0%}",
        f"{snapshot.rows:,}",
        rate_text(snapshot.rows_per_s),
        time_text(snapshot.eta_s),
        f"{snapshot.rejected:,}",
    )


def _hosts(hosts: Sequence[Host]) -> tuple[Sequence[Column], _Rows]:
    columns = (
        Column("HOST", short=12),
        Column("SLOTS", right=True),
        Column("BUSY", right=True),
        Column("VERSION"),
    )
    return columns, [
        (host.name, f"{host.slots:,}", f"{host.busy:,}", host.version) for host in hosts
    ]


def _units(units: Sequence[UnitAtWork]) -> tuple[Sequence[Column], _Rows]:
    columns = (
        Column("SLOWEST UNITS", short=13, ends=True),
        Column("UNIT", right=True),
        Column("HOST", short=12),
        Column("TIME", right=True),
        Column("ATTEMPT", right=True),
        Column("ROWS", goes=1, right=True),
    )
    rows = [
        (
            unit.job,
            f"{unit.unit:,}",
            unit.host,
            time_text(unit.seconds),
            f"{unit.attempt}",
            f"{unit.live.rows:,}",
        )
        for unit in units
    ]
    return columns, rows
