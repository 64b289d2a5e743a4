"""Claim: more processes or more queries in flight do not make the first article's ways as fast.

Its three ways with 1, 2 and 4 processes and 128 to 8,000 queries in flight in each, beside
`ringhaul exec` with as many worker processes. In a pool of single queries each process has one in
flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.contest import arguments
from bench.data import SMALL, same_file
from bench.exec_seeds import STATEMENT
from bench.harness import DRIVER, OURS, System, claim
from bench.read_peers import select_pattern
from bench.read_systems import execute
from bench.site import Site, make_site
from bench.stage import Stage
from bench.sweep import BOUNDS, FREE, PROCESSES, Crew, name_of, sweep

ROWS = 100_000
#: Pattern of `bench.seeds`, its description, the bounds, and one in how many rows it runs.
PATTERNS = (
    ("S0a", "concurrent", BOUNDS, 10),
    ("S0b", "pool of queries", (FREE,), 20),
    ("S0c", "pool of units", BOUNDS, 10),
)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, crews: dict[int, Crew]) -> Sequence[System]:
        site = make_site(stage, SMALL, 1000, 0)
        return systems(site, crews, same_file(site.path.parent, "key", "local", rows), rows)

    lines = sweep("exec_sweep", f"the article's query {rows:,} times", choose, rounds=rounds)
    mine = max(line.rows_s for line in lines if line.family == OURS)
    best = max(line.rows_s for line in lines if line.family == DRIVER)
    print("\nclaims")
    print(claim("times the best of all of them", mine / best, at_least=1.0))


def systems(site: Site, crews: dict[int, Crew], params: Path, rows: int) -> list[System]:
    """Return ours with each worker, and the article's ways with each number and bound."""
    mine = [
        execute(crew.at(site), STATEMENT, params, rows)._replace(name=name_of("ringhaul", n))
        for n, crew in crews.items()
    ]
    theirs = [
        select_pattern(
            site,
            pattern,
            pattern,
            statement=STATEMENT,
            values=params,
            rows=rows // part,
            processes=count,
            in_flight=bound,
        )._replace(name=name_of(f"{pattern} {words}", count, bound))
        for pattern, words, bounds, part in PATTERNS
        for bound in bounds
        for count in PROCESSES
    ]
    return [*mine, *theirs]


def main() -> None:
    options = arguments("exec_sweep", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
