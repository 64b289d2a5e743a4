"""The patterns of `far_seeds` with green threads: `python -m bench.green_seeds`, same arguments.

Importing it replaces Python's threads and sockets by gevent's, so nothing else may come first.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

# ruff: noqa: E402
import sys
from collections.abc import Sequence
from pathlib import Path

from cassandra.io.geventreactor import GeventConnection
from gevent.pool import Pool

from bench.driver import open_cluster
from bench.far_seeds import POOL, Insert, Person, models, people_of, run, statements


def green(insert: Insert, people: Sequence[Person]) -> None:
    """Insert in a pool of 100 green threads."""
    Pool(POOL).map(insert, people)


PATTERNS = {"gevent": statements, "models-spawned": models}


def main() -> None:
    host, port, pattern, table, path, rows = sys.argv[1:7]
    people = people_of(Path(path), int(rows))
    cluster = open_cluster(host, int(port), connection_class=GeventConnection)
    run(cluster.connect(), PATTERNS[pattern], green, table, people)


if __name__ == "__main__":
    main()
