"""Claim: strategy `pipeline` is fastest at any temporal locality of the file.

Files in which 0 to 80 % of the rows follow a row of the same partition, with each write strategy
and each way of the article about micro-batches: locality favours batches of one partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.contest import arguments, contest, named
from bench.data import local_table
from bench.harness import DRIVER, Median, System, claim, save_table
from bench.peers import driver_pattern
from bench.site import Site, make_site
from bench.stage import Stage
from bench.systems import ours

ROWS = 200_000
PERCENTS = (0, 20, 40, 60, 80)
STRATEGIES = ("pipeline", "single", "token-batch")
#: Pattern of `bench.seeds`, its description, and one in how many rows it loads.
PATTERNS = (
    ("S3a", "async single statements", 4),
    ("S3b", "mixed batches", 2),
    ("S3c", "batches by replicas", 2),
)


def run(rows: int, rounds: int) -> None:
    """Run the bench, print its table and rows/s by locality."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        return [
            system
            for percent in PERCENTS
            for system in systems_at(
                make_site(stage, local_table(percent), rows, worker_pid), percent
            )
        ]

    title = f"load of {rows:,} rows by temporal locality"
    lines = contest("load_locality", title, choose, rounds=rounds)
    print(f"\n{'rows/s':<32}" + "".join(f"{f'{percent} %':>9}" for percent in PERCENTS))
    table = list(_table(lines))
    for name, *rates in table:
        print(f"{name:<32}" + "".join(f"{rate:>9,.0f}" for rate in rates))
    columns = ["rows/s, by rows beside their partition", *(f"{percent} %" for percent in PERCENTS)]
    save_table("load_locality_rates", f"{title}, median of {rounds}", columns, table)
    print("\nclaims")
    for percent in PERCENTS:
        best = max(x.rows_s for x in lines if x.family == DRIVER and f" {percent} %" in x.name)
        times = named(lines, _name("pipeline", percent)).rows_s / best
        print(claim(f"times the article's best way at {percent} %", times, at_least=1.0))


def systems_at(site: Site, percent: int) -> list[System]:
    """Return all systems at one locality."""
    mine = [ours(site, strategy=name, name=_name(name, percent)) for name in STRATEGIES]
    theirs = [
        driver_pattern(site, pattern, f"S3d {percent} %: {pattern} {words}", rows=site.rows // part)
        for pattern, words, part in PATTERNS
    ]
    return [*mine, *theirs]


def _name(strategy: str, percent: int) -> str:
    return f"{strategy}, {percent} %"


def _table(lines: Sequence[Median]) -> Iterator[list[str | float]]:
    """Yield a row for each strategy and each of the article's ways: its name, rates by locality."""
    for strategy in STRATEGIES:
        rates = [round(named(lines, _name(strategy, percent)).rows_s) for percent in PERCENTS]
        yield [f"`ringhaul load --strategy {strategy}`", *rates]
    for pattern, words, _ in PATTERNS:
        starts = [f"S3d {percent} %: {pattern}" for percent in PERCENTS]
        rates = [round(next(x.rows_s for x in lines if x.name.startswith(s))) for s in starts]
        yield [f"{pattern} {words}", *rates]


def main() -> None:
    options = arguments("load_locality", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
