"""Claim: rates grow with workers as long as something other than the server limits each of them.

1 to 16 workers on 1 to 4 hosts load small rows. Far: every worker is limited by the distance to the
cluster, so twice the workers are twice as fast. Busy: the server is the limit, so more workers
change nothing, and cost nothing. The server acknowledges at a bounded speed and stores nothing
(`bench/bounded.py`). Then the pause between two units, by the distance to Redis.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import redis

from bench.bounded import bounded_server
from bench.command import run_command
from bench.data import SMALL, data_file
from bench.harness import Run, claim, save_table
from bench.hosts import WORKER_HOSTS, Hosts, running_hosts, workers
from bench.stage import KEYSPACE, Stage, stage
from bench.tools import summary_of
from config.sections import cache_dir_default
from ringhaul.ledger.ledger import Ledger
from ringhaul.records.unit import UnitResult


class Setting(NamedTuple):
    """What limits the workers."""

    name: str
    cluster_ms: float = 0.0  #: each way
    redis_ms: float = 0.0  #: each way
    rows_per_s: float = 0.0  #: of the server; 0: unbounded
    requests_max: int = 0  #: unanswered ones of a worker; 0: the default


#: 32 requests of ten rows on the way for 0.1 s: 3,200 rows a second and worker.
FAR = Setting("far", cluster_ms=50.0, requests_max=32)
BUSY = Setting("busy", rows_per_s=6_000.0)
#: Workers and hosts.
SIZES = ((1, 1), (2, 1), (4, 1), (4, 4), (8, 4), (16, 4))
ROWS_PER_WORKER = 12_000
ROWS_BUSY = 40_000
UNITS_PER_WORKER = 4
REDIS_MS = (0.0, 10.0)
PAUSE_UNITS = 24
COLUMNS = ("workers", "rows/s", "CPU us a row", "ms between two units of a worker")


class Result(NamedTuple):
    """A finished load."""

    run: Run
    pause_ms: float  #: mean time of a worker between two units

    @property
    def rows_s(self) -> float:
        return self.run.rows / self.run.work_s


def measure(
    hosts: Hosts, running: Stage, setting: Setting, count: int, on: int, rows: int, units: int
) -> Result:
    """Load `rows` rows in `units` units with `count` workers on `on` hosts."""
    per_host = {name: count // on for name in WORKER_HOSTS[:on]}
    ends = running.endpoints
    settings: Mapping[str, str] = {}
    if setting.requests_max:
        settings = {"RINGHAUL_LOAD_IN_FLIGHT_REQUESTS_MAX": str(setting.requests_max)}
    redis.Redis.from_url(running.env["RINGHAUL_BROKER_URL"]).flushdb()
    with ExitStack() as stack:
        server = stack.enter_context(
            bounded_server(ends.contact_points[0], ends.port, rows_per_s=setting.rows_per_s)
        )
        stack.enter_context(
            workers(
                hosts,
                running,
                server.port,
                per_host,
                cluster_ms=setting.cluster_ms,
                redis_ms=setting.redis_ms,
                settings=settings,
            )
        )
        # The first units of a process open its session and connections.
        warm_rows = 200 * count
        _load(running, _file(warm_rows), warm_rows, 4 * count)
        result = _load(running, _file(rows), rows, units, slots=count)
    if server.acknowledged < rows + warm_rows:
        raise RuntimeError(f"{server.acknowledged} rows were acknowledged of {rows + warm_rows}")
    return result


def _file(rows: int) -> Path:
    return data_file(cache_dir_default() / "bench", SMALL, rows=rows)


def _load(running: Stage, path: Path, rows: int, units: int, slots: int = 1) -> Result:
    size = path.stat().st_size
    command = [
        *(sys.executable, "-P", "-m", "ringhaul", "load", str(path)),
        *("-t", f"{KEYSPACE}.{SMALL.name}", "--unit-size", str(-(-size // units))),
        *("--json", "--progress", "none"),
    ]
    done = run_command(command, running.env)
    summary = summary_of(done.out)
    if (summary["state"], summary["rows"]) != ("COMPLETE", rows):
        raise RuntimeError(f"{rows} rows were to be loaded: {summary}")
    ledger = Ledger(redis.Redis.from_url(running.env["RINGHAUL_BROKER_URL"]))
    results = [UnitResult.unpack(packed) for _, packed in ledger.results(summary["job"])]
    worked_ms = sum(one.elapsed_ms for one in results)
    run = Run(
        rows=rows,
        bytes_count=size,
        work_s=summary["elapsed_s"],
        whole_s=done.whole_s,
        cpu_s=done.cpu_s + sum(one.cpu_ms for one in results) / 1000,
        worker_cpu_s=sum(one.cpu_ms for one in results) / 1000,
        rss_bytes_max=summary["worker_rss_bytes_max"],
    )
    idle_ms = summary["elapsed_s"] * 1000 * slots - worked_ms
    return Result(run, idle_ms / len(results))


def run(sizes: Sequence[tuple[int, int]]) -> None:
    """Run the bench and print its tables."""
    with running_hosts() as hosts, stage() as running:
        print_curves(hosts, running, sizes)


def print_curves(hosts: Hosts, running: Stage, sizes: Sequence[tuple[int, int]]) -> None:
    """Measure on a running stage, print the tables, and save them."""
    running.create(SMALL)
    found: dict[str, Result] = {}
    for count, on in sizes:
        wanted = {FAR: ROWS_PER_WORKER * count, BUSY: ROWS_BUSY}
        for setting, of in wanted.items():
            name = _name(setting, count, on)
            found[name] = measure(hosts, running, setting, count, on, of, UNITS_PER_WORKER * count)
            print(f"  {name:<44} {found[name].rows_s:>9,.0f} rows/s", flush=True)
    for redis_ms in REDIS_MS:
        setting = BUSY._replace(redis_ms=redis_ms)
        name = f"1 worker, Redis {redis_ms:g} ms away each way"
        found[name] = measure(hosts, running, setting, 1, 1, ROWS_BUSY, PAUSE_UNITS)
        print(f"  {name:<44} {found[name].pause_ms:>9.0f} ms between units", flush=True)
    print("\nclaims")
    for line in claims(found, sizes):
        print(line)
    title = "scale-out: small rows, by what limits the workers"
    save_table("scale_out", title, COLUMNS, rows(found))


def rows(found: Mapping[str, Result]) -> list[tuple[str, int, float, float]]:
    """Return the table to save."""
    return [
        (
            name,
            round(one.rows_s),
            round(one.run.cpu_s / one.run.rows * 1e6, 1),
            round(one.pause_ms),
        )
        for name, one in found.items()
    ]


def claims(found: Mapping[str, Result], sizes: Sequence[tuple[int, int]]) -> list[str]:
    """Return the lines that compare rates with those of one worker."""
    (first, on), *others = sizes
    lines = []
    for count, hosts in others:
        far = found[_name(FAR, count, hosts)].rows_s / found[_name(FAR, first, on)].rows_s
        share = far * first / count
        text = f"far: share of {count // first} times the rate, {count} workers on {hosts} hosts"
        lines.append(claim(text, share, at_least=0.8))
    count, hosts = sizes[-1]
    busy = found[_name(BUSY, count, hosts)].rows_s / found[_name(BUSY, first, on)].rows_s
    lines.append(
        claim(f"busy: rate with {count} workers, of that with {first}", busy, at_least=0.9)
    )
    return lines


def _name(setting: Setting, count: int, on: int) -> str:
    return f"{setting.name}, {count} worker{'s'[: count > 1]} on {on} host{'s'[: on > 1]}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale_out", description=__doc__)
    parser.add_argument("--workers-max", type=int, default=16, help="default 16")
    options = parser.parse_args()
    run([size for size in SIZES if size[0] <= options.workers_max])


if __name__ == "__main__":
    main()
