"""Claim: the patterns that articles recommend for fast writes in Python are far slower.

They run with the official driver (`bench.seeds`). Most load only a part of the file, as their
names say; on one node all rows have the same replica set, so batches by replica set equal mixed
batches.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest
from bench.data import SMALL
from bench.harness import System
from bench.peers import driver_pattern
from bench.site import make_site
from bench.stage import Stage
from bench.systems import limits, ours

ROWS = 1_000_000

#: Pattern, its description, and one in how many rows it loads: so many that it takes about 20 s.
PATTERNS = (
    ("S0a", "one process, concurrent", 5),
    ("S0b", "pool, a query a task", 20),
    ("S0c", "pool, units of 100", 5),
    ("S3a", "async single statements", 5),
    ("S3b", "mixed batches", 2),
    ("S3c", "batches by replicas", 2),
)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        patterns = [
            driver_pattern(site, pattern, f"{pattern} {words}", rows=rows // part)
            for pattern, words, part in PATTERNS
        ]
        return [*limits(site), ours(site), *patterns]

    contest("load_seeds", f"patterns over {rows:,} small rows", choose, rounds=rounds)


def main() -> None:
    options = arguments("load_seeds", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
