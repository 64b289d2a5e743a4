"""Claim: an aggregate with GROUP BY is several times faster than an unload followed by a query.

5,000 groups, beside cqlsh COPY TO followed by the same SELECT in duckdb. Every result is compared
with duckdb's over the loaded file: exactly, except for averages of floats.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.compute import compute
from bench.contest import arguments, contest, named
from bench.data import SMALL
from bench.harness import COPY, System, claim, of_limit, times_best
from bench.read_peers import copy_then_compute
from bench.read_systems import query, read_limit
from bench.site import Site, make_site
from bench.stage import Stage
from bench.systems import fill

#: cqlsh takes half a minute for so many rows; the claim is about 5,000,000.
ROWS = 1_000_000

#: Functions of the result after its key. All are exact except the last one, an average.
FUNCTIONS = "count(*), sum(seq), min(temperature), max(humidity), avg(temperature)"
SELECT = f"SELECT sensor, {FUNCTIONS} FROM {{table}} GROUP BY sensor ORDER BY sensor"
#: Columns to read.
COLUMNS = ("sensor", "seq", "temperature", "humidity")
#: Sums of floats depend on their order.
AVERAGE_ERROR = 1e-12

Groups = list[tuple[str, int, int, float, float, float]]


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        fill(site)
        check = partial(_check, _truth(site))
        local = SELECT.format(table="t")
        return [
            read_limit(site, COLUMNS),
            query(site, SELECT.format(table=site.name), check),
            copy_then_compute(site, local, check, processes=1),
            copy_then_compute(site, local, check, processes=2),
        ]

    lines = contest("query_small", f"GROUP BY over {rows:,} small rows", choose, rounds=rounds)
    mine = named(lines, "ringhaul query")
    print("\nclaims")
    print(claim("times COPY TO and duckdb", times_best(lines, mine, COPY), at_least=3.0))
    print(f"  of the server's limit: {of_limit(lines, mine):.2f}")


def _truth(site: Site) -> Groups:
    result = site.stage.folder / "truth.csv"
    compute(SELECT.format(table="t"), site.path, result)
    return groups_of(result)


def groups_of(result: Path) -> Groups:
    """Return the groups in a result's CSV file."""
    with result.open(newline="", encoding="utf-8") as file:
        _, *records = csv.reader(file)
    return [
        (sensor, int(count), int(total), float(least), float(most), float(average))
        for sensor, count, total, least, most, average in records
    ]


def _check(truth: Groups, result: Path) -> None:
    differing = differences(truth, groups_of(result))
    if differing:
        raise RuntimeError(f"{len(differing)} groups differ, the first two: {differing[:2]}")


def differences(expected: Groups, found: Groups) -> list[object]:
    """Return the groups that differ; averages may differ within rounding."""
    if len(expected) != len(found):
        return [f"{len(found)} groups, and {len(expected)} were expected"]
    return [
        (one, other)
        for one, other in zip(expected, found, strict=True)
        if one[:-1] != other[:-1] or not math.isclose(one[-1], other[-1], rel_tol=AVERAGE_ERROR)
    ]


def main() -> None:
    options = arguments("query_small", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
