"""Claim: counting a table takes less time than with the peers, and no request can time out.

`ringhaul count` beside `SELECT count(*)` with cqlsh, which is one request for the whole table, an
unload of the keys with Bulk Loader, and the server's own limit of returning the keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import arguments, contest, named
from bench.data import SMALL
from bench.harness import BULK_LOADER, CQLSH, System, claim, of_limit, times_best
from bench.read_peers import bulk_loader_keys, cqlsh_count
from bench.read_systems import count, read_limit
from bench.site import make_site
from bench.stage import Stage
from bench.systems import fill

ROWS = 1_000_000


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        fill(site)
        limit = read_limit(site, site.schema.partition_key)
        systems = [limit, count(site), bulk_loader_keys(site)]
        return [*systems, *_if_it_answers(cqlsh_count(site))]

    lines = contest("count_small", f"count of {rows:,} small rows", choose, rounds=rounds)
    mine = named(lines, "ringhaul count")
    print("\nclaims")
    print(claim("times an unload of the keys", times_best(lines, mine, BULK_LOADER), at_least=1.0))
    if any(line.family == CQLSH for line in lines):
        print(claim("times SELECT count(*)", times_best(lines, mine, CQLSH), at_least=1.0))
    print(f"  of the server's limit: {of_limit(lines, mine):.2f}")


def _if_it_answers(system: System) -> list[System]:
    """Return the system if it completes a run: one request for a whole table may time out."""
    system.reset()
    try:
        system.run()
    except RuntimeError as error:
        if "ReadTimeout" not in str(error):
            raise
        print(f"  left out: {system.name}, to which the server gave a ReadTimeout", flush=True)
        return []
    return [system]


def main() -> None:
    options = arguments("count_small", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
