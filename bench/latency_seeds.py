"""Claim: what an article recommends against latency is slower than ringhaul at any latency.

One by one, in 100 threads, in 100 green threads (gevent, alone and under Celery), and by models of
the object mapper, each at 0, 1, 5, 10 and 100 ms each way. A system inserts as many rows as it can
in some seconds, so that rows a second can be compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from bench.contest import PROCESSES
from bench.data import PEOPLE
from bench.delays import Distant, at_distances
from bench.far_celery import celery_gevent
from bench.far_seeds import POOL, people_of
from bench.harness import DRIVER, Median, Run, System, interleave, machine, medians, save
from bench.peers import checked
from bench.site import Site, make_site
from bench.stage import stage
from bench.systems import ours
from bench.tools import Measured, run_program

ROWS = 300_000
DELAYS_MS = (0.0, 1.0, 5.0, 10.0, 100.0)
#: About how long a system works.
WORK_S = 4.0
#: Rows a second that no pattern exceeds, and the least time of a request.
_RATE_MAX = 2500
_RATE_MAX_CELERY = 400
_REQUEST_S = 0.001


class Pattern(NamedTuple):
    """A pattern of the article, and how many requests it has in flight."""

    label: str
    in_flight: int
    module: str
    name: str


PATTERNS = (
    Pattern("S2a one by one", 1, "bench.far_seeds", "one-by-one"),
    Pattern("S2a 100 threads", POOL, "bench.far_seeds", "threads"),
    Pattern("S2a gevent, pool of 100", POOL, "bench.green_seeds", "gevent"),
    Pattern("S2b models one by one", 1, "bench.far_seeds", "models"),
    Pattern("S2b models spawned", POOL, "bench.green_seeds", "models-spawned"),
)
CELERY = "S2a celery -P gevent -c 100"
OURS = "ringhaul load"


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""
    with stage() as running, at_distances(running, DELAYS_MS, PROCESSES) as (_, distant):
        site = make_site(running, PEOPLE, rows, worker_pid=0)
        systems = [
            system
            for delay_ms, one in distant.items()
            for system in systems_at(site, delay_ms, one)
        ]
        for system in systems:
            if system.name.startswith(OURS):  # the server compiles its code under load
                system.reset()
                system.run()
        runs = interleave(systems, rounds)
    lines = medians(systems, runs)
    title = f"small rows over distance, median of {rounds}"
    print(f"\n{title}\n{machine()}")
    print(table("rows a second", lines, lambda line: f"{line.rows_s:,.0f}"))
    print(table("client CPU, us a row", lines, lambda line: f"{line.cpu_us_per_row:,.1f}"))
    path = save("latency_seeds", title, lines, runs)
    print(f"\nkept in {path} and {path.with_suffix('.svg').name}", flush=True)


def systems_at(site: Site, delay_ms: float, one: Distant) -> list[System]:
    """Return all systems at one delay."""
    here = Site(one.stage, site.table, site.path, site.rows, one.worker_pid)
    found = [
        pattern_at(here, pattern, name_of(pattern.label, delay_ms), rows_of(pattern, delay_ms))
        for pattern in PATTERNS
    ]
    people = people_of(site.path, rows_in(POOL, delay_ms, _RATE_MAX_CELERY))
    celery = celery_gevent(here, name_of(CELERY, delay_ms), people)
    return [*found, celery, ours(here, name=name_of(OURS, delay_ms))]


def pattern_at(site: Site, pattern: Pattern, name: str, rows: int) -> System:
    """Return the system of one pattern."""

    def run_it() -> Run:
        result, done = run_program(
            site.stage, pattern.module, pattern.name, site.name, str(site.path), str(rows)
        )
        measured = checked(site, Measured(result["queries"], result["work_s"], done))
        # With few rows, the start of the program would be most of its CPU.
        return replace(measured, cpu_s=result["cpu_s"])

    return site.system(name, DRIVER, run_it)


def rows_of(pattern: Pattern, delay_ms: float) -> int:
    """Return how many rows the pattern inserts in some seconds."""
    return rows_in(pattern.in_flight, delay_ms)


def rows_in(in_flight: int, delay_ms: float, rate_max: int = _RATE_MAX) -> int:
    """Return how many rows can be inserted in some seconds with so many requests in flight."""
    rate = in_flight / (2 * delay_ms / 1000 + _REQUEST_S)
    return int(WORK_S * min(rate, rate_max))


def name_of(label: str, delay_ms: float) -> str:
    """Return the name of a system at one delay."""
    return f"{label}, {delay_ms:g} ms"


def table(title: str, lines: Sequence[Median], value: Callable[[Median], str]) -> str:
    """Format a table: a line for each system, a column for each delay."""
    by_name = {line.name: line for line in lines}
    labels = [*(pattern.label for pattern in PATTERNS), CELERY, OURS]
    width = max(map(len, labels))
    head = "".join(f" {f'{ms:g} ms':>9}" for ms in DELAYS_MS)
    rows = [f"\n{title}, by milliseconds each way", f"{'system':<{width}}{head}"]
    for label in labels:
        cells = [value(by_name[name_of(label, ms)]) for ms in DELAYS_MS]
        rows.append(f"{label:<{width}}" + "".join(f" {cell:>9}" for cell in cells))
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency_seeds", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of ringhaul, default {ROWS:,}")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    options = parser.parse_args()
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
