"""Claim: wide rows of mixed types cost a fraction of a microsecond of client CPU per cell."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import WIDE20
from bench.harness import System, claim
from bench.line_up import line_up
from bench.site import make_site
from bench.stage import Stage

ROWS = 300_000


def run(rows: int, rounds: int, *, short: bool = False, without: Sequence[str] = ()) -> None:
    """Run the bench, print its table and each system's cost of a cell."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        return line_up(
            make_site(stage, WIDE20, rows, worker_pid), without, short=short, batch_rows=6
        )

    cells = len(WIDE20.columns)
    lines = contest(
        "load_wide", f"load of {rows:,} rows of {cells} mixed columns", choose, rounds=rounds
    )
    print(f"\nclient CPU per cell ({cells} a row)")
    for line in lines:
        print(f"  {line.name:<34} {line.cpu_us_per_row / cells:>6.3f} us")
    mine = named(lines, "ringhaul pipeline")
    per_cell = mine.path_us_per_row / cells
    print("\nclaims")
    print(claim("CPU of the worker path, us a cell", per_cell, at_most=0.4))


def main() -> None:
    options = arguments("load_wide", __doc__, rows=ROWS, rounds=5, may_leave_out=True)
    run(options.rows, options.rounds, short=options.short, without=options.without)


if __name__ == "__main__":
    main()
