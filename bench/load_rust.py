"""Claim: a Rust client with the maintained driver loads no faster than ringhaul, and uses more CPU.

1,000,000 rows of six small columns, beside `bench/rust_client`: the maintained async driver in
Rust (`scylla`), prepared single statements, 1,024 in flight. It parses, types and sends; ringhaul
also accounts for every row. Needs cargo, therefore `make bench-full` leaves it out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.command import run_command
from bench.contest import arguments, contest, named
from bench.data import SMALL
from bench.delays import cargo_program
from bench.harness import RUST, Run, System, claim
from bench.site import Site, make_site
from bench.stage import Stage
from bench.systems import limits, ours

ROWS = 1_000_000
#: In total; ringhaul has up to as many on each of its connections.
IN_FLIGHT = 1024
#: Threads of tokio's runtime: as many as ringhaul has processes, and 0 for a single thread.
THREADS = (2, 0)

_SOURCE = Path(__file__).parent / "rust_client"


def build() -> Path:
    """Return the program; build it if it is not up to date (some minutes the first time)."""
    return cargo_program(_SOURCE, "rust-client", "bench.load_rust")


def rust_client(site: Site, program: Path, *, threads: int) -> System:
    """`bench/rust_client` with so many runtime threads; 0 is tokio's current-thread runtime."""

    def run() -> Run:
        ends = site.stage.endpoints
        command = [
            *(str(program), ends.contact_points[0], str(ends.port), site.name, str(site.path)),
            *(str(threads), str(IN_FLIGHT)),
        ]
        done = run_command(command, site.stage.env_embedded)
        result = json.loads(done.out)
        site.check(result["rows"])
        return Run(
            rows=result["rows"],
            bytes_count=site.path.stat().st_size,
            work_s=result["load_s"],
            whole_s=done.whole_s,
            cpu_s=done.cpu_s,
            rss_bytes_max=done.rss_bytes_max,
        )

    label = f"{threads} threads" if threads else "current thread"
    return site.system(f"Rust client, {label}", RUST, run)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""
    program = build()

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        clients = [rust_client(site, program, threads=threads) for threads in THREADS]
        return [*limits(site), ours(site), ours(site, strategy="single"), *clients]

    lines = contest("load_rust", f"Rust client, {rows:,} small rows", choose, rounds=rounds)
    # The same requests as the driver's: one a row.
    mine = named(lines, "ringhaul single")
    rust = [line for line in lines if line.family == RUST]
    cpu_times = mine.cpu_us_per_row / min(line.cpu_us_per_row for line in rust)
    rows_s_times = mine.rows_s / max(line.rows_s for line in rust)
    print("\nclaims")
    print(claim("CPU, times the better Rust client", cpu_times, at_most=1.0))
    print(claim("rows/s, times the better Rust client", rows_s_times, at_least=0.95))


def main() -> None:
    options = arguments("load_rust", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
