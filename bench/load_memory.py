"""Claim: memory does not grow with the file.

A CSV of 2 GB loads with every worker process under 300 MB and the producer under 200 MB of peak
resident memory.
"""

from __future__ import annotations

import argparse
import json
import sys

from bench.command import run_command
from bench.data import SMALL, data_file
from bench.harness import save_table
from bench.stage import KEYSPACE, stage
from config.sections import cache_dir_default

WORKER_MB_MAX = 300
PRODUCER_MB_MAX = 200
ROW_BYTES = 68  # average of SMALL


def run(size_bytes: int) -> None:
    """Load a file of about `size_bytes` and print peak memory. Raise if a bound is exceeded."""
    rows = size_bytes // ROW_BYTES
    path = data_file(cache_dir_default() / "bench", SMALL, rows=rows)
    with stage() as running, running.worker(2):
        running.create(SMALL)
        print(f"loading {path.stat().st_size / 1e9:.2f} GB ...", flush=True)
        command = [
            *(sys.executable, "-P", "-m", "ringhaul", "load", str(path)),
            *("-t", f"{KEYSPACE}.{SMALL.name}", "--json", "--progress", "none"),
        ]
        done = run_command(command, running.env)
    producer_mb = done.rss_bytes_max / 1e6
    messages = [json.loads(line) for line in done.out.splitlines()]
    summary = next(m for m in messages if m["message_type"] == "summary")
    worker_mb = summary["worker_rss_bytes_max"] / 1e6
    print(f"\nmemory while loading {path.stat().st_size / 1e9:.2f} GB, {summary['rows']:,} rows")
    print(f"  largest worker process  {worker_mb:6.0f} MB  (bound {WORKER_MB_MAX})")
    print(f"  producer                {producer_mb:6.0f} MB  (bound {PRODUCER_MB_MAX})")
    save_table(
        "load_memory" if size_bytes >= 1 << 30 else "load_memory_short",
        "Peak memory of a load",
        ["file", "rows", "largest worker process, MB", "command, MB"],
        [
            [
                f"{path.stat().st_size / 1e9:.2f} GB",
                summary["rows"],
                round(worker_mb),
                round(producer_mb),
            ]
        ],
    )
    if summary["state"] != "COMPLETE" or summary["rows"] != rows:
        raise SystemExit(f"the load ended {summary['state']} with {summary['rows']} rows")
    if worker_mb > WORKER_MB_MAX or producer_mb > PRODUCER_MB_MAX:
        raise SystemExit("a bound was passed")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load_memory", description=__doc__)
    parser.add_argument("--bytes", type=int, default=2 << 30)
    run(parser.parse_args().bytes)


if __name__ == "__main__":
    main()
