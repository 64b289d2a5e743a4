"""Claim: more processes or another bound in flight do not make the article's ways as fast.

The ways of the article about micro-batches in 1, 2 and 4 processes, with 128 to 8,000 rows in
flight in each, beside `ringhaul load` with as many worker processes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments
from bench.data import SMALL
from bench.harness import DRIVER, OURS, System, claim
from bench.peers import driver_pattern
from bench.site import Site, make_site
from bench.stage import Stage
from bench.sweep import BOUNDS, PROCESSES, Crew, name_of, sweep
from bench.systems import ours

ROWS = 400_000
#: Pattern of `bench.seeds`, its description, and one in how many rows it loads.
PATTERNS = (
    ("S3a", "async single statements", 10),
    ("S3b", "mixed batches", 4),
    ("S3c", "batches by replicas", 4),
)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, crews: dict[int, Crew]) -> Sequence[System]:
        return systems(make_site(stage, SMALL, rows, 0), crews)

    lines = sweep("load_sweep", f"load of {rows:,} small rows", choose, rounds=rounds)
    mine = max(line.rows_s for line in lines if line.family == OURS)
    best = max(line.rows_s for line in lines if line.family == DRIVER)
    print("\nclaims")
    print(claim("times the best of all of them", mine / best, at_least=1.0))


def systems(site: Site, crews: dict[int, Crew]) -> list[System]:
    """Return ours with each worker, and the article's ways with each number and bound."""
    mine = [ours(crew.at(site), name=name_of("ringhaul", n)) for n, crew in crews.items()]
    theirs = [
        driver_pattern(
            site,
            pattern,
            f"{pattern} {words}",
            rows=site.rows // part,
            processes=count,
            in_flight=bound,
        )._replace(name=name_of(f"{pattern} {words}", count, bound))
        for pattern, words, part in PATTERNS
        for bound in BOUNDS
        for count in PROCESSES
    ]
    return [*mine, *theirs]


def main() -> None:
    options = arguments("load_sweep", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
