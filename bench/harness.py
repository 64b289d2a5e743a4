"""Interleaved rounds of several systems on one machine, and their medians.

A B C A B C, never A A A B B B: the machine drifts (caches, compaction, neighbours), and the drift
must affect all systems alike. Medians are reported with their spread.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from cassandra import DriverException

from bench.picture import Bar, Panel, picture

RESULTS = Path(__file__).parent / "results"
#: For systems that failed in all rounds, as happens on a busy machine.
_MORE_ROUNDS = 3
#: Runnable processes on the machine before the bench adds its own.
_LOAD_BEFORE = os.getloadavg()[0]

#: Families of systems. A ratio is to the best of a family.
OURS, LIMIT = "ringhaul", "limit"
COPY, CQLSH, BULK_LOADER, DRIVER, RUST = "COPY", "cqlsh", "Bulk Loader", "driver", "Rust"
PEERS = (COPY, CQLSH, BULK_LOADER, DRIVER, RUST)
_COLOURS = {
    OURS: "#1b6ca8",
    LIMIT: "#9aa5b1",
    COPY: "#e08e45",
    CQLSH: "#c9a227",
    BULK_LOADER: "#5b8c5a",
    DRIVER: "#8d6a9f",
    RUST: "#b0413e",
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of one system."""

    rows: int
    bytes_count: int
    #: From the first request to the last answer, as the system itself reports it.
    work_s: float
    #: The whole command, start to exit.
    whole_s: float
    #: CPU of all client processes.
    cpu_s: float
    #: ringhaul's CPU from reading to accounting, from its summary; the peers report none.
    worker_cpu_s: float | None = None
    rss_bytes_max: int


class System(NamedTuple):
    """A system under test: it writes rows to a table, or reads them."""

    name: str
    family: str
    reset: Callable[[], None]  #: removes the data of the previous run
    run: Callable[[], Run]


@dataclass(frozen=True, kw_only=True)
class Median:
    """Medians over the rounds of one system."""

    name: str
    family: str
    rounds: int
    rows: int
    rows_s: float  #: from first request to last answer
    rows_s_spread: float  #: (max - min) / median
    rows_s_whole: float  #: whole command
    mb_s: float
    cpu_us_per_row: float
    worker_cpu_us_per_row: float | None
    rss_mb_max: float

    @property
    def path_us_per_row(self) -> float:
        """Return the CPU of ringhaul's worker path; the peers do not report it."""
        if self.worker_cpu_us_per_row is None:
            raise ValueError(f"{self.name} does not report the CPU of its workers")
        return self.worker_cpu_us_per_row


def interleave(systems: Sequence[System], rounds: int) -> dict[str, list[Run]]:
    """Run every system once a round, each after a reset.

    A run that fails is printed and left out: the hours of the others would be lost with it.
    A system that failed in every round gets more. Raise `RuntimeError` if it never succeeds.
    """
    runs: dict[str, list[Run]] = {system.name: [] for system in systems}
    for number in range(rounds + _MORE_ROUNDS):
        for system in systems:
            if number >= rounds and runs[system.name]:
                continue
            try:
                system.reset()
                run = system.run()
            except (RuntimeError, DriverException) as error:
                print(f"  round {number + 1}/{rounds}  {system.name} FAILED: {error}", flush=True)
                continue
            runs[system.name].append(run)
            print(
                f"  round {number + 1}/{rounds}  {system.name:<34} {run.rows / run.work_s:>9,.0f} "
                f"rows/s  {run.rows / run.whole_s:>9,.0f} whole  "
                f"{run.cpu_s / run.rows * 1e6:>6.2f} us/row",
                flush=True,
            )
    never = [name for name, of_one in runs.items() if not of_one]
    if never:
        raise RuntimeError(f"failed in every round: {', '.join(never)}")
    return runs


def medians(systems: Sequence[System], runs: Mapping[str, Sequence[Run]]) -> list[Median]:
    """Return one line for each system."""
    return [median(system.name, system.family, runs[system.name]) for system in systems]


def median(name: str, family: str, runs: Sequence[Run]) -> Median:
    """Return the line of one system."""
    rates = [run.rows / run.work_s for run in runs]
    middle = statistics.median(rates)
    worker = [run.worker_cpu_s / run.rows for run in runs if run.worker_cpu_s is not None]
    return Median(
        name=name,
        family=family,
        rounds=len(runs),
        rows=runs[0].rows,
        rows_s=middle,
        rows_s_spread=(max(rates) - min(rates)) / middle,
        rows_s_whole=statistics.median(run.rows / run.whole_s for run in runs),
        mb_s=statistics.median(run.bytes_count / run.work_s for run in runs) / 1e6,
        cpu_us_per_row=statistics.median(run.cpu_s / run.rows for run in runs) * 1e6,
        worker_cpu_us_per_row=statistics.median(worker) * 1e6 if worker else None,
        rss_mb_max=max(run.rss_bytes_max for run in runs) / 1e6,
    )


def of_limit(lines: Sequence[Median], line: Median) -> float:
    """Return rows a second as a share of the server's limit, the best one among the lines."""
    return line.rows_s / max(other.rows_s for other in lines if other.family == LIMIT)


def times_best(lines: Sequence[Median], line: Median, family: str) -> float:
    """Return the speed as a multiple of the best of a family, which must be among the lines.

    Whole command against whole command, except for the driver's patterns: they do only a part of
    the work, of which their start would be too large a share.
    """

    def rate(of: Median) -> float:
        return of.rows_s if family == DRIVER else of.rows_s_whole

    return rate(line) / max(rate(other) for other in lines if other.family == family)


def report(title: str, lines: Sequence[Median]) -> str:
    """Format the table: each system, its share of the limit, its speed relative to the peers."""
    peers = [family for family in PEERS if any(line.family == family for line in lines)]
    limited = any(line.family == LIMIT for line in lines)
    name_width = max(len(line.name) for line in lines)
    head = (
        f"{'system':<{name_width}} {'rows/s':>8} {'spread':>6} {'whole':>8} {'MB/s':>6} "
        f"{'CPU us/row':>10} {'workers':>7} {'RSS MB':>6}"
    )
    head += " of limit" if limited else ""
    head += "".join(f" {'x ' + family:>{_width(family)}}" for family in peers)
    text = [f"\n{title}", machine(), "", head]
    for line in lines:
        worker = line.worker_cpu_us_per_row
        row = (
            f"{line.name:<{name_width}} {line.rows_s:>8,.0f} {line.rows_s_spread:>6.0%} "
            f"{line.rows_s_whole:>8,.0f} {line.mb_s:>6.1f} {line.cpu_us_per_row:>10.2f} "
            f"{'-' if worker is None else f'{worker:.2f}':>7} {line.rss_mb_max:>6.0f}"
        )
        row += f" {of_limit(lines, line):>8.2f}" if limited else ""
        row += "".join(
            f" {times_best(lines, line, family):>{_width(family)}.2f}" for family in peers
        )
        text.append(row)
    return "\n".join(text)


def _width(family: str) -> int:
    return len(family) + 2


def claim(
    text: str, value: float, *, at_most: float | None = None, at_least: float | None = None
) -> str:
    """Format a line that compares a measured value with its bound."""
    bound = f"at most {at_most:g}" if at_most is not None else f"at least {at_least:g}"
    kept = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
    return f"  {'kept' if kept else 'MISSED':<6}  {text}: {value:.2f} ({bound})"


def save(name: str, title: str, lines: Sequence[Median], runs: Mapping[str, Sequence[Run]]) -> Path:
    """Save every run and the medians as JSON, with a picture beside it; return the JSON's path."""
    path = keep(
        name,
        title,
        {
            "medians": [asdict(line) for line in lines],
            "runs": {system: [asdict(run) for run in of_one] for system, of_one in runs.items()},
        },
    )
    panels = [
        Panel("rows a second", [_bar(line, line.rows_s) for line in lines]),
        Panel("client CPU, us a row", [_bar(line, line.cpu_us_per_row) for line in lines]),
    ]
    path.with_suffix(".svg").write_text(picture(title, machine(), panels))
    return path


def save_table(
    name: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[str | float | int]]
) -> Path:
    """Save the figures of a bench that has no systems to compare; return the JSON's path.

    Texts and numbers are shown as they are, so round numbers first.
    """
    return keep(name, title, {"columns": list(columns), "rows": [list(row) for row in rows]})


def keep(name: str, title: str, content: Mapping[str, object]) -> Path:
    """Write `bench/results/NAME.json`, in place of an earlier run of this name; return its path.

    `python -m bench.page` writes docs/explanation/benchmarks.md from these files.
    """
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    head = {
        "bench": name,
        "title": title,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "command": _command(name),
        "load_before": round(_LOAD_BEFORE, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }
    path.write_text(json.dumps(head | dict(content), indent=1) + "\n")
    return path


def _command(name: str) -> str:
    """Return the command that runs; of a test or a notebook, the one that repeats the bench."""
    given = sys.orig_argv[1:]
    if given[:1] == ["-m"] and given[1:2] and given[1].startswith("bench."):
        return shlex.join(["python", *given])
    return f"python -m bench.{name}"


def _bar(line: Median, value: float) -> Bar:
    return Bar(line.name, value, _COLOURS[line.family])


def machine() -> str:
    """Describe the machine of the measurements in one line."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores shared with the Cassandra node, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )
