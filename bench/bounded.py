"""A server of bounded speed: `bench/bounded_server` (Rust without any crate) before a real node.

The node answers log-ins, system tables and PREPARE; writes are acknowledged by the program at the
rates given, and go nowhere. So many workers can run against a busy server on a small machine, and
none of them is starved by the server's CPU.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.delays import cargo_program

_SOURCE = Path(__file__).parent / "bounded_server"


class Bounded:
    """A running server: `port`, and once the block has ended `acknowledged`, in rows."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.acknowledged = 0


@contextmanager
def bounded_server(
    host: str, port: int, *, rows_per_s: float = 0, rows_per_s_of_a_connection: float = 0
) -> Iterator[Bounded]:
    """Run the server in front of the node at `host`:`port` during the block. 0: unbounded."""
    program = cargo_program(_SOURCE, "bounded-server", "the server of bounded speed")
    rates = (str(rows_per_s), str(rows_per_s_of_a_connection))
    process = subprocess.Popen(
        [str(program), host, str(port), *rates], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None and process.stdin is not None
        bounded = Bounded(int(process.stdout.readline()))
        try:
            yield bounded
        finally:
            process.stdin.close()  # which ends it
            bounded.acknowledged = int(process.stdout.readline() or 0)
