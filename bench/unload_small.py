"""Claim: a table of small rows is unloaded several times faster than with the peers.

Whole commands with a running worker, beside cqlsh COPY TO, DataStax Bulk Loader and the server's
own limit, interleaved, on one machine that also runs the Cassandra node. Rows are counted in the
files of every run; once for CSV and once for Parquet they are compared value for value with the
loaded file.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import SMALL
from bench.harness import BULK_LOADER, COPY, System, claim, of_limit, times_best
from bench.read_peers import bulk_loader_unload, copy_to
from bench.read_systems import read_limit, unload
from bench.site import make_site
from bench.stage import Stage
from bench.systems import fill

#: The lower ratios are claimed up to so many rows, the higher ones for more.
ROWS = 1_000_000


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        fill(site)
        return [
            read_limit(site, SMALL.columns),
            unload(site, kind="csv"),
            unload(site, kind="parquet"),
            copy_to(site, processes=1),
            copy_to(site, processes=2),
            bulk_loader_unload(site),
            bulk_loader_unload(site, files="2C"),
        ]

    name = "unload_small_more" if rows > ROWS else "unload_small"
    lines = contest(name, f"unload of {rows:,} small rows", choose, rounds=rounds)
    mine, parquet = named(lines, "ringhaul unload, csv"), named(lines, "ringhaul unload, parquet")
    copy_bound, bulk_bound = (4.0, 2.0) if rows > ROWS else (2.0, 1.5)
    copy, bulk = times_best(lines, mine, COPY), times_best(lines, mine, BULK_LOADER)
    print("\nclaims")
    print(claim("times the better COPY TO", copy, at_least=copy_bound))
    print(claim("times the better Bulk Loader", bulk, at_least=bulk_bound))
    print(claim("share of the server's limit", of_limit(lines, mine), at_least=0.6))
    print(claim("CPU of the worker path, us a row", mine.path_us_per_row, at_most=0.8))
    print(claim("CPU of all processes, us a row", mine.cpu_us_per_row, at_most=0.8))
    print(claim("Parquet, times CSV", parquet.rows_s_whole / mine.rows_s_whole, at_least=1.0))


def main() -> None:
    options = arguments("unload_small", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
