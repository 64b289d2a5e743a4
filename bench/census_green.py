"""The ways of `census_ways` in green threads: `python -m bench.census_green`, same arguments.

Importing it replaces Python's threads and sockets by gevent's, so nothing else may come first. The
process that reads the archives keeps its own.
"""

from __future__ import annotations

import multiprocessing

from gevent import monkey

if multiprocessing.parent_process() is None:
    monkey.patch_all()

import queue
import sys
from collections.abc import Callable

import gevent
from cassandra.io.geventreactor import GeventConnection
from gevent.pool import Pool

from bench.census_ways import POLL_S, Records, Row, Statements, run
from bench.driver import open_cluster


def in_green_threads(workers: int, records: Records, work: Callable[[Row], None]) -> None:
    """Work in green threads."""

    def loop(_: int) -> None:
        while True:
            try:
                record = records.get_nowait()
            except queue.Empty:
                gevent.sleep(POLL_S)
                continue
            if record is None:
                return
            work(record)

    Pool(workers).map(loop, range(workers))


def main() -> None:
    host, port, way, *arguments = sys.argv[1:]
    cluster = open_cluster(host, int(port), connection_class=GeventConnection)
    run(Statements(cluster.connect()), way, in_green_threads, arguments)


if __name__ == "__main__":
    main()
