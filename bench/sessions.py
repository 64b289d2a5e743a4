"""Show that sessions open in turn, after the fork, and are all closed at exit.

The first article opens a session in each process of a pool, all at once; its readers ask how not to
storm a cluster with them, and how to close them. The server's own list of connections is read while
such a pool starts and ends, and while `ringhaul worker` does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from cassandra.cluster import Session

from bench.harness import claim, save_table
from bench.stage import Stage, stage
from config.sections import WorkerSettings

PROCESSES = 8
EVERY_S = 0.05
#: Connections that open within this time open together.
TOGETHER_S = 0.25
#: For the server to notice closed connections.
CLOSED_S = 2.0
#: A pool whose processes each open a session and wait until it ends.
_POOL = """
import sys, time
from bench.seeds import Target, _Pool
host, port, processes = sys.argv[1:]
target = Target(host, int(port), "SELECT key FROM system.local WHERE key = ?")
with _Pool(target, int(processes), 0):
    time.sleep(2)
"""


class Connections(NamedTuple):
    """What the server saw of one way."""

    most: int
    together: int  #: most that opened within `TOGETHER_S`
    left: int  #: after the end


def run(processes: int) -> list[Connections]:
    """Watch both ways, print the table and save it; return what was seen: the pool, then ours."""
    with stage() as running:
        ways: dict[str, Callable[[], None]] = {
            f"S0e a pool of {processes}, all at once": lambda: _run_pool(running, processes),
            f"`ringhaul worker -c {processes}`": lambda: _run_worker(running, processes),
        }
        seen = {name: watched(running.session, way) for name, way in ways.items()}
    columns = ["sessions of", "connections", f"opened within {TOGETHER_S:g} s", "left at the end"]
    save_table(
        "sessions",
        "Connections that the server lists",
        columns,
        [[name, *found] for name, found in seen.items()],
    )
    for name, found in seen.items():
        print(f"  {name:<36} {found}")
    pool, ours = seen.values()
    print("\nclaims")
    print(claim("connections that a worker leaves", ours.left, at_most=0))
    return [pool, ours]


def _run_pool(running: Stage, processes: int) -> None:
    ends = running.endpoints
    command = [sys.executable, "-c", _POOL, ends.contact_points[0], str(ends.port), str(processes)]
    subprocess.run(command, env=running.env_embedded, check=True)


def _run_worker(running: Stage, processes: int) -> None:
    """Run a worker with the default pause before each opening."""
    jitter_s = str(WorkerSettings().session_jitter_s)
    env = running.env | {"RINGHAUL_WORKER_SESSION_JITTER_S": jitter_s}
    with replace(running, env=env).worker(processes):
        pass


def watched(session: Session, run_it: Callable[[], None]) -> Connections:
    """Run something and watch the server's list of connections."""
    before = count_connections(session)
    with _watching(session) as seen:
        run_it()
        time.sleep(CLOSED_S)
    counts = [(at, max(0, count - before)) for at, count in seen]
    together = max(
        (
            count - earlier
            for at, count in counts
            for then, earlier in counts
            if 0 <= at - then <= TOGETHER_S
        ),
        default=0,
    )
    return Connections(max(count for _, count in counts), together, counts[-1][1])


@contextmanager
def _watching(session: Session) -> Iterator[list[tuple[float, int]]]:
    seen: list[tuple[float, int]] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(EVERY_S):
            seen.append((time.monotonic(), count_connections(session)))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
        seen.append((time.monotonic(), count_connections(session)))


def count_connections(session: Session) -> int:
    """Return the clients' connections of one node, this session's included."""
    return len(session.execute("SELECT port FROM system_views.clients", timeout=60).all())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"default {PROCESSES}")
    run(parser.parse_args().processes)


if __name__ == "__main__":
    main()
