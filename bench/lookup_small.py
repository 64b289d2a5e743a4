"""Claim: the rows of many keys come several times faster than with the driver's own helper.

Shuffled keys of a table of small rows. `ringhaul lookup`, which writes its rows to CSV files,
beside `execute_concurrent_with_args` in one process, which drops them, and the server's own limit:
with a request for each key, and with lists of keys as in ringhaul.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import SMALL, keys_file
from bench.harness import DRIVER, System, claim, of_limit, times_best
from bench.read_peers import select_pattern
from bench.read_systems import lookup, select_limit
from bench.site import make_site
from bench.stage import Stage
from bench.systems import fill
from ringhaul.statements.key_block import LIST_KEYS

ROWS = 1_000_000
#: One in how many rows is looked up, and one in how many of those by the driver.
KEYS_ONE_IN, DRIVER_ONE_IN = 5, 5


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""
    count = rows // KEYS_ONE_IN

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        fill(site)
        keys = keys_file(site.path, count)
        one = f"SELECT {', '.join(SMALL.columns)} FROM {site.name} WHERE id"
        return [
            select_limit(site, f"{one} = ?", keys, count),
            select_limit(site, f"{one} IN ?", keys, count, each=LIST_KEYS),
            lookup(site, keys, count),
            select_pattern(
                site,
                "S0a",
                "execute_concurrent, one process",
                statement=f"{one} = ?",
                values=keys,
                rows=count // DRIVER_ONE_IN,
            ),
        ]

    lines = contest("lookup_small", f"look-up of {count:,} of {rows:,} keys", choose, rounds=rounds)
    mine = named(lines, "ringhaul lookup")
    print("\nclaims")
    print(claim("times execute_concurrent", times_best(lines, mine, DRIVER), at_least=6.0))
    print(f"  of the server's limit: {of_limit(lines, mine):.2f}")


def main() -> None:
    options = arguments("lookup_small", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
