"""Claim: memory does not grow with a zip archive.

A zip of 3 GB of fixed-width records (unpacked) loads with every worker process under 300 MB and the
producer under 200 MB of peak resident memory, as a plain CSV does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

from bench.census import GEO, GEO_CHARACTERS, geo_layout, zip_file
from bench.command import run_command
from bench.harness import save_table
from bench.load_memory import PRODUCER_MB_MAX, WORKER_MB_MAX
from bench.stage import KEYSPACE, Stage, stage
from config.sections import cache_dir_default

SIZE_BYTES = 3 << 30


class Measured(NamedTuple):
    """What a load took."""

    rows: int
    rows_s: float
    zip_bytes: int
    worker_mb: float
    producer_mb: float


def measure(running: Stage, folder: Path, size_bytes: int) -> Measured:
    """Load about `size_bytes` of records from a zip archive with the running worker.

    The archive is written if it is missing. Raise `RuntimeError` if the load is not complete.
    """
    records = size_bytes // (GEO_CHARACTERS + 1)
    path = zip_file(folder, GEO, records)
    running.create(GEO)
    command = [
        *(
            sys.executable,
            "-P",
            "-m",
            "ringhaul",
            "load",
            str(path),
            "-t",
            f"{KEYSPACE}.{GEO.name}",
        ),
        *("--format", "fixed", "--layout", str(geo_layout(running.folder))),
        *("--json", "--progress", "none"),
    ]
    done = run_command(command, running.env)
    messages = [json.loads(line) for line in done.out.splitlines()]
    summary = next(m for m in messages if m["message_type"] == "summary")
    if summary["state"] != "COMPLETE" or summary["rows"] != records:
        raise RuntimeError(f"the load ended {summary['state']} with {summary['rows']} rows")
    return Measured(
        records,
        summary["rows_per_s"],
        path.stat().st_size,
        summary["worker_rss_bytes_max"] / 1e6,
        done.rss_bytes_max / 1e6,
    )


def run(size_bytes: int) -> None:
    """Load, and print peak memory. Raise if a bound is exceeded."""
    with stage() as running, running.worker(2):
        print(f"loading {size_bytes / 1e9:.2f} GB from a zip archive ...", flush=True)
        found = measure(running, cache_dir_default() / "bench", size_bytes)
    print(
        f"\nmemory while loading {size_bytes / 1e9:.2f} GB from a zip of "
        f"{found.zip_bytes / 1e9:.2f} GB, {found.rows:,} rows at {found.rows_s:,.0f} rows/s"
    )
    print(f"  largest worker process  {found.worker_mb:6.0f} MB  (bound {WORKER_MB_MAX})")
    print(f"  producer                {found.producer_mb:6.0f} MB  (bound {PRODUCER_MB_MAX})")
    show(found, size_bytes)
    if found.worker_mb > WORKER_MB_MAX or found.producer_mb > PRODUCER_MB_MAX:
        raise SystemExit("a bound was passed")


def show(found: Measured, size_bytes: int) -> None:
    """Save the figures for the page of benchmarks."""
    save_table(
        "load_zip",
        "Peak memory of a load from a zip archive of fixed-width records",
        ["unpacked", "archive", "rows", "largest worker process, MB", "command, MB"],
        [
            [
                f"{size_bytes / 1e9:.2f} GB",
                f"{found.zip_bytes / 1e9:.2f} GB",
                found.rows,
                round(found.worker_mb),
                round(found.producer_mb),
            ]
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load_zip", description=__doc__)
    parser.add_argument("--bytes", type=int, default=SIZE_BYTES)
    run(parser.parse_args().bytes)


if __name__ == "__main__":
    main()
