"""Claim: small rows load at the server's own pace, several times faster than with the peers.

1,000,000 rows of six small columns, beside cqlsh COPY, DataStax Bulk Loader and the server's own
limit, interleaved, on one machine that also runs the Cassandra node.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import SMALL
from bench.harness import BULK_LOADER, COPY, System, claim, times_best
from bench.line_up import line_up
from bench.site import make_site
from bench.stage import Stage
from bench.systems import print_shares

#: The lower ratios are claimed up to so many rows, the higher ones for more.
ROWS = 1_000_000


def run(rows: int, rounds: int, *, short: bool = False, without: Sequence[str] = ()) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        return line_up(site, without, short=short)

    more = rows > ROWS
    name = "load_small_short" if short else "load_small_more" if more else "load_small"
    lines = contest(name, f"load of {rows:,} small rows", choose, rounds=rounds)
    mine = named(lines, "ringhaul pipeline")
    print("\nclaims")
    print(claim("CPU of the worker path, us a row", mine.path_us_per_row, at_most=2.5))
    print_shares(lines, mine)
    copy_bound, bulk_bound = (3.0, 1.7) if more else (2.5, 1.5)
    print(claim("times the better COPY", times_best(lines, mine, COPY), at_least=copy_bound))
    print(
        claim(
            "times the better Bulk Loader",
            times_best(lines, mine, BULK_LOADER),
            at_least=bulk_bound,
        )
    )
    if any(line.name == "ringhaul embedded" for line in lines):
        embedded = named(lines, "ringhaul embedded")
        slower_s = rows / embedded.rows_s_whole - rows / mine.rows_s_whole
        print(claim("seconds that embedding adds", slower_s, at_most=3.0))


def main() -> None:
    options = arguments("load_small", __doc__, rows=ROWS, rounds=5, may_leave_out=True)
    run(options.rows, options.rounds, short=options.short, without=options.without)


if __name__ == "__main__":
    main()
