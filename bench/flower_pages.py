"""Claim: Flower's pages about jobs stay small and quick.

With a job of 50,000 units that has ended, one that runs, and 5,000 ended jobs, Flower stays below
400 MB, and answers `/jobs` and `/jobs/JOB` within 300 ms: the first time as well, and 19 times of
20.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.made_jobs import age, make_load
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.sweep import sweep_running

UNITS = 50_000
JOBS = 5_000
REJECTS = 2_000
MB_MAX = 400
MS_MAX = 300
#: Requests of each page, after the first.
ROUNDS = 30
#: Pages that are open at the same time for this long, as on the screens of a team.
OPEN_PAGES = 40
OPEN_S = 20
ENDED, RUNNING = "ld-ended", "ld-runs"
PATHS = (
    "/jobs",
    "/jobs?state=trouble",
    "/jobs?q=orders_3&page=2",
    "/jobs?page=80",
    f"/jobs/{ENDED}",
    f"/jobs/{RUNNING}",
)


def run(units: int, jobs: int) -> None:
    """Make the ledger, and print memory and times of Flower. Raise if a bound is exceeded."""
    with (
        tempfile.TemporaryDirectory(prefix="ringhaul-bench-") as folder,
        EmbeddedValkey(Path(folder, "valkey")) as valkey,
    ):
        began_s = time.monotonic()
        _fill(Ledger(connect(valkey.url)), units, jobs)
        print(f"{jobs:,} jobs and two of {units:,} units: {time.monotonic() - began_s:.0f} s")
        env = os.environ | {
            "RINGHAUL_BROKER_URL": valkey.url,
            "RINGHAUL_STATE_DIR": str(Path(folder, "state")),
        }
        with _flower(env) as (process, url):
            _measure(process, url)


def _fill(ledger: Ledger, units: int, jobs: int) -> None:
    for number in range(jobs):
        table = f"orders_{number % 7}"
        make_load(ledger, f"ld-{number:05}", 2, table=table, rejects=number % 3)
        if number % 100 == 99:  # as workers do, so that ended jobs are no longer among the running
            sweep_running(ledger, lambda job: 0, lambda *_: None)
    make_load(ledger, ENDED, units, rejects=min(REJECTS, units))
    age(ledger, ENDED, 480)
    make_load(ledger, RUNNING, units, done=units // 2, rejects=min(REJECTS, units // 2))
    age(ledger, RUNNING, 480)


def _measure(process: psutil.Process, url: str) -> None:
    names = " ".join(f"{name:>9}" for name in ("first", "median", "19 of 20", "slowest"))
    print(f"\n{'page':<28} {names}   bound {MS_MAX} ms")
    slowest = 0.0
    for path in PATHS:
        first, *others = [_ms(f"{url}{path}") for _ in range(ROUNDS + 1)]
        others.sort()
        most = others[ROUNDS * 19 // 20]
        figures = (first, statistics.median(others), most, others[-1])
        print(f"{path:<28} " + " ".join(f"{ms:6.0f} ms" for ms in figures))
        slowest = max(slowest, first, most)
    streams = [
        urllib.request.urlopen(f"{url}{path}", timeout=60)
        for path in ("/events/jobs", f"/jobs/{ENDED}/events", f"/jobs/{RUNNING}/events")
        for _ in range(OPEN_PAGES // 3)
    ]
    cpu_s = _cpu_s(process)
    time.sleep(OPEN_S)
    share = (_cpu_s(process) - cpu_s) / OPEN_S
    beside = max(_ms(f"{url}{path}") for path in PATHS)
    for stream in streams:
        stream.close()
    peak_mb = _peak_mb(process)
    print(f"slowest beside {len(streams)} open pages: {beside:.0f} ms")
    print(f"these take {share:.0%} of a core")
    print(f"memory of Flower, at most: {peak_mb:.0f} MB (bound {MB_MAX})")
    if max(slowest, beside) > MS_MAX or peak_mb > MB_MAX:
        raise SystemExit("a bound was passed")


def _ms(url: str) -> float:
    began_s = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return (time.perf_counter() - began_s) * 1000


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak_mb(process: psutil.Process) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024 / 1e6


@contextmanager
def _flower(env: dict[str, str]) -> Iterator[tuple[psutil.Process, str]]:
    """Run `ringhaul flower` for the length of the block."""
    command = [sys.executable, "-P", "-m", "ringhaul", "flower", "--port=0"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as flower:
        assert flower.stderr is not None
        try:
            for line in flower.stderr:
                if found := re.search(r"Visit me at (http://\S+)", line):
                    break
            else:
                raise SystemExit("Flower does not start")
            time.sleep(2)  # it says so a moment before it serves
            yield psutil.Process(flower.pid), found[1]
        finally:
            flower.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.flower_pages", description=__doc__)
    parser.add_argument("--units", type=int, default=UNITS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args()
    run(given.units, given.jobs)


if __name__ == "__main__":
    main()
