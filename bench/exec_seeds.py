"""Claim: a query repeated many times runs several times faster than with the first article's
patterns.

The article's query, `SELECT * FROM system.local WHERE key = ?`, with decoded results, beside its
three patterns (`bench.seeds`) and the server's own limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import SMALL, same_file
from bench.harness import DRIVER, System, claim, of_limit, times_best
from bench.read_peers import select_pattern
from bench.read_systems import execute, select_limit
from bench.site import make_site
from bench.stage import Stage

#: The article has 10,000, which take less than a second here.
ROWS = 100_000
STATEMENT = "SELECT * FROM system.local WHERE key = ?"
#: Pattern, its description, and one in how many rows of values it runs.
PATTERNS = (
    ("S0a", "one process, concurrent", 5),
    ("S0b", "pool, a query a task", 10),
    ("S0c", "pool, units of 100", 5),
)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        # Only the running worker is used, not the table: the query reads a system table.
        site = make_site(stage, SMALL, 1000, worker_pid)
        params = same_file(site.path.parent, "key", "local", rows)
        patterns = [
            select_pattern(
                site,
                pattern,
                f"{pattern} {words}",
                statement=STATEMENT,
                values=params,
                rows=rows // part,
            )
            for pattern, words, part in PATTERNS
        ]
        limit = select_limit(site, STATEMENT, params, rows)
        return [limit, execute(site, STATEMENT, params, rows), *patterns]

    lines = contest("exec_seeds", f"the article's query {rows:,} times", choose, rounds=rounds)
    mine = named(lines, "ringhaul exec")
    print("\nclaims")
    print(claim("times the best pattern", times_best(lines, mine, DRIVER), at_least=4.0))
    print(f"  of the server's limit: {of_limit(lines, mine):.2f}")


def main() -> None:
    options = arguments("exec_seeds", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
