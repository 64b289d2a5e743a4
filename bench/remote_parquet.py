"""Claim: large row groups behind a URL are read with many requests in flight, in bounded memory.

A Parquet file of one row group of 60 columns, on a local web server that delays each answer like a
distant one. ringhaul beside what a script would do: pyarrow over fsspec's file, with its defaults,
and with `pre_buffer`, which holds a whole row group in memory. Each read is a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.command import run_command
from bench.harness import claim, machine

COLUMNS = 60
MIB = 300
DELAY_S = 0.2
ROUNDS = 3
OURS, PLAIN, BUFFERED = "ringhaul", "pyarrow upon fsspec", "the same, pre_buffer"
_BATCH_ROWS = 16_384


class Read(NamedTuple):
    """The cost of a read of the file."""

    seconds: float
    rss_mib: int  #: growth since the start
    requests: int
    rows: int
    total: int  #: sum of the first column's values: all systems must find the same


class _Slow(BaseHTTPRequestHandler):
    """Serve ranges of one file, each after a delay."""

    protocol_version = "HTTP/1.1"

    def __init__(self, path: Path, counted: list[int], *rest: Any) -> None:
        self._file, self._counted = path, counted
        super().__init__(*rest)

    def handle(self) -> None:
        with suppress(ConnectionError):  # from a client that has read enough
            super().handle()

    def do_HEAD(self) -> None:
        self._begin(200, self._file.stat().st_size)

    def do_GET(self) -> None:
        size = self._file.stat().st_size
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-"))
        assert wanted is not None
        first, last = int(wanted[1]), min(int(wanted[2] or size), size - 1)
        self._begin(206, last + 1 - first, f"bytes {first}-{last}/{size}")
        with self._file.open("rb") as file:
            file.seek(first)
            self.wfile.write(file.read(last + 1 - first))

    def _begin(self, code: int, length: int, part: str = "") -> None:
        self._counted.append(1)
        time.sleep(DELAY_S)
        self.send_response(code)
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Log nothing: the number of requests is enough."""


@contextmanager
def _served(path: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield the URL of a file, and a list that grows by one with each request."""
    counted: list[int] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Slow, path, counted))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{path.name}", counted
    finally:
        server.shutdown()
        server.server_close()


def _write(path: Path, mib: int) -> None:
    rows = (mib << 20) // COLUMNS // 8
    source = np.random.default_rng(1)
    table = pa.table({f"c{place}": source.integers(0, 2**62, rows) for place in range(COLUMNS)})
    pq.write_table(table, path, row_group_size=rows, compression="zstd", use_dictionary=False)


def _batches(system: str, url: str) -> Iterator[pa.RecordBatch]:
    """Yield all columns of the file, in batches of some thousand rows."""
    if system != OURS:
        import fsspec

        with fsspec.open(url) as file:
            parquet = pq.ParquetFile(file, pre_buffer=system == BUFFERED)
            yield from parquet.iter_batches(_BATCH_ROWS)
        return
    from ringhaul.formats.parquet_read import read_batches
    from ringhaul.formats.split import Position
    from ringhaul.sources.files import open_parquet
    from ringhaul.sources.source import SourceFile
    from ringhaul.storage import remote
    from ringhaul.storage.access import Access, set_access

    set_access(Access(private_addresses=True))
    found = remote.stat_file(url)
    source = SourceFile(found.path, found.size_bytes, False, found.version)
    names = [f"c{place}" for place in range(COLUMNS)]
    start = Position(0, 0, 1)
    size_bytes = 1 << 40  # to the end of the row group
    with open_parquet(source, 0, names) as parquet:
        for read in read_batches(
            parquet, names, size_bytes=size_bytes, start=start, block_bytes=1 << 20
        ):
            yield read.batch


def read(system: str, url: str) -> None:
    """Read the file and print the cost; runs in a separate process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    rows = total = 0
    for batch in _batches(system, url):
        rows += batch.num_rows
        total += int(batch.column(0).to_numpy().astype(np.uint64).sum())
    seconds = time.monotonic() - began
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    result = {"seconds": seconds, "rss_mib": more >> 10, "rows": rows, "total": total % 2**64}
    print(json.dumps(result))


def run(mib: int, rounds: int) -> None:
    """Run the bench and print its table."""
    reads: dict[str, list[Read]] = {OURS: [], PLAIN: [], BUFFERED: []}
    with tempfile.TemporaryDirectory(prefix="ringhaul-bench-") as folder:
        path = Path(folder) / "wide.parquet"
        _write(path, mib)
        with _served(path) as (url, counted):
            for _ in range(rounds):
                for system, found in reads.items():
                    counted.clear()
                    command = [sys.executable, "-m", "bench.remote_parquet", "--read", system, url]
                    done = run_command(command, dict(os.environ))
                    found.append(Read(**json.loads(done.out), requests=len(counted)))
    assert len({(one.rows, one.total) for found in reads.values() for one in found}) == 1
    print(f"{COLUMNS} columns, {mib} MiB, one row group, {DELAY_S} s a request ({machine()})")
    print(f"{'system':<22} {'seconds':>8} {'requests':>9} {'RSS MiB':>8} {'x ours':>7}")
    mine = statistics.median(one.seconds for one in reads[OURS])
    for system, found in reads.items():
        seconds = statistics.median(one.seconds for one in found)
        rss = statistics.median(one.rss_mib for one in found)
        figures = f"{seconds:>8.1f} {found[0].requests:>9} {rss:>8.0f} {seconds / mine:>7.1f}"
        print(f"{system:<22} {figures}")
    plain = statistics.median(one.seconds for one in reads[PLAIN])
    held, whole = (
        statistics.median(one.rss_mib for one in reads[system]) for system in (OURS, BUFFERED)
    )
    print("\nclaims")
    print(claim("times as fast as pyarrow upon fsspec", plain / mine, at_least=2.0))
    print(claim("share of the memory of pre_buffer", held / whole, at_most=0.6))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.remote_parquet", description=__doc__)
    parser.add_argument("--mib", type=int, default=MIB, help=f"size of the file, default {MIB}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--read", nargs=2, metavar=("SYSTEM", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read(*options.read)
    else:
        run(options.mib, options.rounds)


if __name__ == "__main__":
    main()
