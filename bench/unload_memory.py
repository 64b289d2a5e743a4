"""Claim: an unload takes bounded memory for any shape of the table.

One partition of 3 million rows, and 5 million partitions of one row, are unloaded with every worker
process under 300 MB of peak resident memory, without a timeout, a retry or a repeated unit, and
every row is in the files once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench.command import run_command
from bench.data import Table, data_file, local_table
from bench.stage import KEYSPACE, Stage, stage
from config.sections import cache_dir_default

WORKER_MB_MAX = 300
FORMATS = ("csv", "parquet")
ROWS = 1_000_000

#: All rows follow a row of the same partition, or none does.
ONE_PARTITION, ALL_PARTITIONS = local_table(100), local_table(0)
#: The claim's bounds.
WIDE_ROWS, TINY_ROWS = 3_000_000, 5_000_000


def run(wide_rows: int, tiny_rows: int) -> None:
    """Load both tables, unload them, print peak memory. Raise if a bound is exceeded."""
    with stage() as running:
        lines = measure(running, ONE_PARTITION, wide_rows, "one partition")
        lines += measure(running, ALL_PARTITIONS, tiny_rows, "a partition for each row")
    print("\nmemory while unloading, and what went wrong", *lines, sep="\n")


def measure(running: Stage, table: Table, rows: int, shape: str) -> list[str]:
    """Load so many rows with `ringhaul load`, unload them in each format; a line for each."""
    running.create(table)
    path = data_file(cache_dir_default() / "bench", table, rows=rows)
    print(f"loading {rows:,} rows into {shape} ...", flush=True)
    name = f"{KEYSPACE}.{table.name}"
    with running.worker(2):
        loaded = _summary(running, "load", str(path), "-t", name)
    counted = running.count(table)
    if not loaded["rows"] == counted == rows:
        raise SystemExit(f"{loaded['rows']:,} rows were loaded, and {counted:,} are there")
    lines = []
    for fmt in FORMATS:
        folder = running.folder / f"out-{table.name}-{fmt}"
        # Peak memory is that since a process started, so the load's workers are not reused.
        with running.worker(2):
            summary = _summary(running, "unload", "-t", name, "-o", str(folder), "--format", fmt)
        lines.append(_line(summary, f"{shape}, {rows:,} rows, {fmt}"))
        print(lines[-1], flush=True)
        _check(summary, folder, rows)
        shutil.rmtree(folder)
    return lines


def _summary(running: Stage, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "ringhaul", *words, "--json", "--progress", "none"]
    messages = map(json.loads, run_command(command, running.env).out.splitlines())
    found: dict[str, Any] = next(m for m in messages if m["message_type"] == "summary")
    return found


def _line(summary: dict[str, Any], what: str) -> str:
    return (
        f"  {what:<46} {summary['worker_rss_bytes_max'] / 1e6:4.0f} MB (bound {WORKER_MB_MAX})  "
        f"{summary['rows'] / summary['elapsed_s']:>9,.0f} rows/s  {summary['retries']} retries  "
        f"{summary['splits']} splits  {summary['repeated_units']} repeated of "
        f"{summary['units']} units"
    )


def _check(summary: dict[str, Any], folder: Path, rows: int) -> None:
    """Raise if a row is missing or repeated, memory exceeded its bound, or a read failed."""
    parts = json.loads((folder / "_manifest.json").read_text())["parts"]
    numbers = np.sort(np.concatenate([_numbers(folder / part["name"]) for part in parts]))
    if summary["state"] != "COMPLETE" or not np.array_equal(numbers, np.arange(rows)):
        raise SystemExit(f"the unload ended {summary['state']}; {len(numbers):,} rows in its files")
    if summary["worker_rss_bytes_max"] > WORKER_MB_MAX * 1e6:
        raise SystemExit("the bound of memory was passed")
    if summary["retries"] or summary["splits"] or summary["repeated_units"]:
        raise SystemExit("a read failed, or a unit was done again")


def _numbers(part: Path) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the numbers of a part's rows: `seq`, which counts the rows of the loaded file."""
    if part.suffix == ".parquet":
        column = pq.read_table(part, columns=["seq"])["seq"]
    else:
        chosen = pa.csv.ConvertOptions(include_columns=["seq"])
        column = pa.csv.read_csv(part, convert_options=chosen)["seq"]
    found: np.ndarray[Any, np.dtype[np.int64]] = column.to_numpy()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.unload_memory", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each table [1,000,000]")
    parser.add_argument("--full", action="store_true", help="as many rows as the claim says")
    given = parser.parse_args()
    if given.full:
        run(WIDE_ROWS, TINY_ROWS)
    else:
        run(given.rows, given.rows)


if __name__ == "__main__":
    main()
