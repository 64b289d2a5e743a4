"""Claim: loading small rows is several times faster than cqlsh COPY and near the server's limit.

1,000,000 rows of six small columns, ours beside COPY (1 and 2 processes) and the server's own
limit, interleaved, on one machine that also runs the Cassandra node.
"""

from __future__ import annotations

import argparse

from bench.data import SMALL, data_file
from bench.harness import interleave, medians, report, save
from bench.stage import stage
from bench.systems import cqlsh_copy, limit, ours, ours_embedded
from config.sections import cache_dir_default

PROCESSES = 2


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""
    path = data_file(cache_dir_default() / "bench", SMALL, rows=rows)
    with stage() as running, running.worker(PROCESSES) as worker_pid:
        running.create(SMALL)
        standing = ours(running, SMALL, path, worker_pid=worker_pid)
        systems = [
            limit(running, SMALL, path),
            standing,
            ours(running, SMALL, path, worker_pid=worker_pid, strategy="token-batch"),
            ours_embedded(running, SMALL, path, processes=PROCESSES),
            cqlsh_copy(running, SMALL, path, processes=1),
            cqlsh_copy(running, SMALL, path, processes=2),
        ]
        print("warming up the node ...", flush=True)
        for _ in range(2):
            running.truncate(SMALL)
            systems[0].run()
        runs = interleave(systems, rounds, lambda: running.truncate(SMALL))
    lines = medians(runs)
    print(report(f"load of {rows:,} small rows, median of {rounds}", lines, ours=standing.name))
    print(f"\nkept in {save('load_small', runs, lines)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load_small", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
