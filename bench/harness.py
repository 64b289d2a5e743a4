"""Interleaved rounds of several systems on one machine, and what they come to.

A B C A B C, never A A A B B B: the machine drifts (caches, compaction, neighbours), and what
drifts must hit all systems alike. Medians are reported, with the spread beside them.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of one system."""

    rows: int
    bytes_count: int
    #: From the first request to the last answer, as the system itself tells it.
    load_s: float
    #: The whole command, start to exit.
    whole_s: float
    #: CPU of all client processes.
    cpu_s: float
    rss_bytes_max: int


class System(NamedTuple):
    """Something that loads the file into the table; `run` does it once."""

    name: str
    run: Callable[[], Run]


@dataclass(frozen=True, kw_only=True)
class Median:
    """Medians over the rounds of one system."""

    name: str
    rounds: int
    rows_s: float  #: from first request to last answer
    rows_s_spread: float  #: (max - min) / median
    rows_s_whole: float  #: whole command
    mb_s: float
    cpu_us_per_row: float
    rss_mb_max: float


def interleave(
    systems: Sequence[System], rounds: int, reset: Callable[[], None]
) -> dict[str, list[Run]]:
    """Run every system once a round; `reset` empties the table before each run."""
    runs: dict[str, list[Run]] = {system.name: [] for system in systems}
    for number in range(rounds):
        for system in systems:
            reset()
            run = system.run()
            runs[system.name].append(run)
            print(
                f"  round {number + 1}/{rounds}  {system.name:<34} {run.rows / run.load_s:>9,.0f} "
                f"rows/s  {run.rows / run.whole_s:>9,.0f} whole  "
                f"{run.cpu_s / run.rows * 1e6:>6.2f} us/row",
                flush=True,
            )
    return runs


def medians(runs: Mapping[str, Sequence[Run]]) -> list[Median]:
    """One line for each system."""
    lines = []
    for name, of_one in runs.items():
        rates = [run.rows / run.load_s for run in of_one]
        middle = statistics.median(rates)
        lines.append(
            Median(
                name=name,
                rounds=len(of_one),
                rows_s=middle,
                rows_s_spread=(max(rates) - min(rates)) / middle,
                rows_s_whole=statistics.median(run.rows / run.whole_s for run in of_one),
                mb_s=statistics.median(run.bytes_count / run.load_s for run in of_one) / 1e6,
                cpu_us_per_row=statistics.median(run.cpu_s / run.rows * 1e6 for run in of_one),
                rss_mb_max=max(run.rss_bytes_max for run in of_one) / 1e6,
            )
        )
    return lines


def report(title: str, lines: Sequence[Median], *, ours: str) -> str:
    """The table, with the ratio of ours to each other system."""
    mine = next(line for line in lines if line.name == ours)
    text = [
        f"\n{title}",
        f"{machine()}",
        "",
        f"{'system':<34} {'rows/s':>9} {'spread':>7} {'whole':>9} {'MB/s':>6} "
        f"{'CPU us/row':>10} {'RSS MB':>7} {'ours is':>8} {'whole':>7}",
    ]
    for line in lines:
        text.append(
            f"{line.name:<34} {line.rows_s:>9,.0f} {line.rows_s_spread:>6.0%} "
            f"{line.rows_s_whole:>9,.0f} {line.mb_s:>6.1f} {line.cpu_us_per_row:>10.2f} "
            f"{line.rss_mb_max:>7.0f} {mine.rows_s / line.rows_s:>7.2f}x "
            f"{mine.rows_s_whole / line.rows_s_whole:>6.2f}x"
        )
    return "\n".join(text)


def save(name: str, runs: Mapping[str, Sequence[Run]], lines: Sequence[Median]) -> Path:
    """Keep every run and the medians as JSON; the path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    content = {
        "bench": name,
        "machine": machine(),
        "medians": [asdict(line) for line in lines],
        "runs": {system: [asdict(run) for run in of_one] for system, of_one in runs.items()},
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def machine() -> str:
    """What the figures were measured on, in a line."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores shared with the Cassandra node, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )
