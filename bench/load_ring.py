"""Claim: on three nodes with replication 3, ringhaul is faster than the article's ways, too.

There each row has the same replicas as well, but batches cost a coordinator more: it must send
their rows on. ringhaul writes at LOCAL_QUORUM, the article's ways at the driver's LOCAL_ONE.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import SMALL
from bench.harness import DRIVER, System, claim, times_best
from bench.peers import driver_pattern
from bench.site import make_site
from bench.stage import Stage
from bench.systems import ours

ROWS = 400_000
NODES = 3
#: Three nodes share the machine's memory.
HEAP = "1500M"
#: Pattern of `bench.seeds`, its description, and one in how many rows it loads.
PATTERNS = (
    ("S3a", "async single statements", 10),
    ("S3b", "mixed batches", 4),
    ("S3c", "batches by replicas", 4),
)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        patterns = [
            driver_pattern(site, pattern, f"{pattern} {words}", rows=rows // part)
            for pattern, words, part in PATTERNS
        ]
        return [ours(site), ours(site, strategy="single"), *patterns]

    title = f"load of {rows:,} small rows on three nodes, replication 3"
    lines = contest("load_ring", title, choose, rounds=rounds, nodes=NODES, heap=HEAP)
    times = times_best(lines, named(lines, "ringhaul pipeline"), DRIVER)
    print("\nclaims")
    print(claim("times the best of the article's ways", times, at_least=1.0))


def main() -> None:
    options = arguments("load_ring", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
