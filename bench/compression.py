"""What `cluster.compression = "lz4"` costs and saves: bytes on the wire, CPU and rate.

A load and an unload of small rows with and without it, interleaved, through a proxy that counts
bytes: next to the node, and over a line of 10 Mbit/s each way. The node's CPU counts, too.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from bench.contest import PROCESSES
from bench.data import SMALL
from bench.delays import behind
from bench.harness import OURS, System, save_table
from bench.load_sstables import listener, loaded
from bench.processes import tree_usage
from bench.read_systems import unload
from bench.site import Site, make_site
from bench.stage import Stage, stage

ROWS = 50_000
#: Bytes a second each way; 0: as many as there are.
NARROW = 10_000_000 // 8
LINES = {"near": 0, "10 Mbit/s": NARROW}
SETTINGS = ("none", "lz4")
_PIECE_BYTES = 16 * 1024


class Line:
    """A proxy that counts bytes, and lets through so many a second each way.

    All connections share them. Two threads a connection.
    """

    def __init__(self, target: tuple[str, int], bytes_s: int) -> None:
        self.bytes_count: Counter[str] = Counter()  #: by `requests` and `answers`
        self._target, self._bytes_s = target, bytes_s
        self._free_at_s = dict.fromkeys(("requests", "answers"), 0.0)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for one, other, way in ((client, server, "requests"), (server, client, "answers")):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    arguments = one, other, way
                    threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(self, source: socket.socket, to: socket.socket, way: str) -> None:
        with suppress(OSError):
            while data := source.recv(_PIECE_BYTES):
                time.sleep(self._pause_s(way, len(data)))
                to.sendall(data)
        for one in (source, to):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _pause_s(self, way: str, count: int) -> float:
        """Count bytes; return when they may go."""
        with self._lock:
            self.bytes_count[way] += count
            if not self._bytes_s:
                return 0.0
            now_s = time.monotonic()
            self._free_at_s[way] = max(self._free_at_s[way], now_s) + count / self._bytes_s
            return self._free_at_s[way] - now_s


class Figures(NamedTuple):
    """Of one transfer, for each row."""

    rows_s: float
    request_bytes: float
    answer_bytes: float
    client_us: float
    node_us: float


class Way(NamedTuple):
    """A command with its worker behind a line."""

    name: str
    system: System
    line: Line
    check: Callable[[int], None]
    runs: list[Figures]


@contextmanager
def ways(running: Stage, site: Site) -> Iterator[list[Way]]:
    """Run a worker for each setting and line, and give what they transfer."""
    ends = running.endpoints
    with ExitStack() as stack:
        found = []
        for at, bytes_s in LINES.items():
            for setting in SETTINGS:
                line = Line((ends.contact_points[0], ends.port), bytes_s)
                stack.callback(line.stop)
                far = behind(running, line.port, len(found))
                far = replace(far, env=far.env | {"RINGHAUL_CLUSTER_COMPRESSION": setting})
                pid = stack.enter_context(far.worker(PROCESSES))
                there = Site(far, site.table, site.path, site.rows, pid)
                systems = {
                    "load": there.system("load", OURS, partial(loaded, there)),
                    "unload": unload(there, kind="csv"),
                }
                for what, system in systems.items():
                    name = f"{what}, {at}, {setting}"
                    found.append(Way(name, system, line, there.check, []))
        yield found


def measure(way: Way, node_cpu_s: Callable[[], float]) -> None:
    """Transfer once, and keep the figures."""
    way.system.reset()
    way.line.bytes_count.clear()
    before_s = node_cpu_s()
    done = way.system.run()
    node_s = node_cpu_s() - before_s
    rows = done.rows
    way.check(rows)
    way.runs.append(
        Figures(
            rows / done.work_s,
            way.line.bytes_count["requests"] / rows,
            way.line.bytes_count["answers"] / rows,
            (done.worker_cpu_s or 0.0) / rows * 1e6,
            node_s / rows * 1e6,
        )
    )


def median(way: Way) -> Figures:
    return Figures(*(statistics.median(figures) for figures in zip(*way.runs, strict=True)))


def run(rows: int, rounds: int) -> None:
    """Run the bench, print its table and save it."""
    with stage() as running:
        site = make_site(running, SMALL, rows, worker_pid=0)
        pid = listener(running.endpoints.port)
        with ways(running, site) as chosen:
            for kind in ("load", "unload"):
                some = [way for way in chosen if way.name.startswith(f"{kind},")]
                for number in range(rounds + 1):  # the server compiles its code under load
                    for way in some:
                        measure(way, lambda: tree_usage(pid).cpu_s)
                        if number == 0:
                            way.runs.clear()
    columns = [
        "transfer",
        "rows/s",
        "bytes sent a row",
        "received",
        "worker CPU, us a row",
        "node CPU",
    ]
    lines: list[list[str | float | int]] = []
    for way in sorted(chosen, key=lambda way: (way.name.split(",")[0], way.name.split(",")[1])):
        found = median(way)
        lines.append(
            [
                way.name,
                round(found.rows_s),
                round(found.request_bytes, 1),
                round(found.answer_bytes, 1),
                round(found.client_us, 2),
                round(found.node_us, 2),
            ]
        )
        print("  ".join(f"{cell!s:>24}" for cell in lines[-1]), flush=True)
    title = f"{rows:,} small rows with and without LZ4, median of {rounds}"
    path = save_table("compression", title, columns, lines)
    print(f"kept in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compression", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"default {ROWS:,}")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    options = parser.parse_args()
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
