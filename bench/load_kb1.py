"""Claim: rows of 1 kB load at the server's own pace, at a few microseconds of client CPU each.

The table of the measurements that made cqlsh's COPY fast.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import KB1
from bench.harness import System, claim
from bench.line_up import line_up
from bench.site import make_site
from bench.stage import Stage
from bench.systems import print_shares

ROWS = 300_000


def run(rows: int, rounds: int, *, short: bool = False, without: Sequence[str] = ()) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        return line_up(make_site(stage, KB1, rows, worker_pid), without, short=short, batch_rows=4)

    lines = contest("load_kb1", f"load of {rows:,} rows of 1 kB", choose, rounds=rounds)
    mine = named(lines, "ringhaul pipeline")
    print("\nclaims")
    print(claim("CPU of the worker path, us a row", mine.path_us_per_row, at_most=6.0))
    print_shares(lines, mine)


def main() -> None:
    options = arguments("load_kb1", __doc__, rows=ROWS, rounds=5, may_leave_out=True)
    run(options.rows, options.rounds, short=options.short, without=options.without)


if __name__ == "__main__":
    main()
