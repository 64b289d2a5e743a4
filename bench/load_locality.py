"""Claim: strategy `pipeline` is fastest at any temporal locality of the file.

Files in which 0 to 80 % of the rows follow a row of the same partition, with each write strategy:
locality favours batches of one partition.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import local_table
from bench.harness import System
from bench.site import make_site
from bench.stage import Stage
from bench.systems import ours

ROWS = 200_000
PERCENTS = (0, 20, 40, 60, 80)
STRATEGIES = ("pipeline", "single", "token-batch", "concurrent")


def run(rows: int, rounds: int) -> None:
    """Run the bench, print its table and rows/s by locality."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        sites = [
            (percent, make_site(stage, local_table(percent), rows, worker_pid))
            for percent in PERCENTS
        ]
        return [
            ours(site, strategy=strategy, name=_name(strategy, percent))
            for percent, site in sites
            for strategy in STRATEGIES
        ]

    lines = contest(
        "load_locality", f"load of {rows:,} rows by temporal locality", choose, rounds=rounds
    )
    print(f"\n{'rows/s':<14}" + "".join(f"{f'{percent} %':>9}" for percent in PERCENTS))
    for strategy in STRATEGIES:
        rates = [named(lines, _name(strategy, percent)).rows_s for percent in PERCENTS]
        print(f"{strategy:<14}" + "".join(f"{rate:>9,.0f}" for rate in rates))


def _name(strategy: str, percent: int) -> str:
    return f"{strategy}, {percent} %"


def main() -> None:
    options = arguments("load_locality", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
