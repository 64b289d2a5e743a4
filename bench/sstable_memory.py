"""Claim: a process that makes SSTables stays under 400 MB, however large the input is.

A CSV of 10 GB that a web server on loopback generates, loaded with `--to-sstables` and with
`--via streaming`. The input is not stored; the SSTables are, of the first way until the second one
begins. Printed is the peak of each worker process.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.command import run_command
from bench.generated_input import COLUMNS, LINE_BYTES, SCHEMA, scores, served
from bench.harness import save_table
from bench.processes import tree, tree_usage
from bench.stage import KEYSPACE, Stage, stage

SIZE_BYTES = 10**10
CHILD_MB_MAX = 400
PROCESSES = 2
TABLE = f"{KEYSPACE}.generated"
TO_SSTABLES, STREAMING = "--to-sstables", "--via streaming"
_SCORES_AT_ONCE = 1_000_000


class Measured(NamedTuple):
    """What one way took."""

    way: str
    rows: int
    seconds: float
    sstables: int
    sstable_bytes: int  #: of all files, or sent
    children_mb: list[float]  #: peak of each worker process
    command_mb: float

    @property
    def is_bounded(self) -> bool:
        return max(self.children_mb) < CHILD_MB_MAX


def measure(
    running: Stage,
    worker_pid: int,
    way: str,
    records: int,
    remove: Callable[[Path], None] = shutil.rmtree,
) -> Measured:
    """Load with a worker that has loaded nothing before, and check what is there.

    `remove`: is called with the folder of `--to-sstables`. Raise `RuntimeError` unless all rows are
    there.
    """
    out = running.folder / "sstables"
    options = ("--to-sstables", str(out)) if way == TO_SSTABLES else ("--via", "streaming")
    running.session.execute(f"DROP TABLE IF EXISTS {TABLE}", timeout=60)
    running.session.execute(f"CREATE TABLE {TABLE} ({SCHEMA})", timeout=60)
    with served(records) as url:
        command = [
            *(sys.executable, "-P", "-m", "ringhaul", "load", url, "-t", TABLE, *options),
            *("--no-header", "--columns", ",".join(COLUMNS), "--json", "--progress", "none"),
        ]
        done = run_command(command, running.env)
    messages = [json.loads(line) for line in done.out.splitlines()]
    summary = next(m for m in messages if m["message_type"] == "summary")
    if summary["state"] != "COMPLETE" or summary["rows"] != records:
        raise RuntimeError(f"the load ended {summary['state']} with {summary['rows']} rows")
    children = [tree_usage(pid).rss_bytes_max / 1e6 for pid in tree(worker_pid)[1:]]
    if way == STREAMING:
        check_table(running, records)
        stored = sum(summary["streamed_bytes"].values())
    else:
        stored = sum(path.stat().st_size for path in out.rglob("*.db"))
        remove(out)
    return Measured(
        way, records, summary["elapsed_s"], summary["sstables"], stored, children,
        done.rss_bytes_max / 1e6,
    )  # fmt: skip


def check_table(running: Stage, records: int) -> None:
    """Raise `RuntimeError` unless the table has so many rows, and their scores add up."""
    query = f"SELECT count(*) AS n, sum(score) AS total FROM {TABLE}"
    command = [sys.executable, "-P", "-m", "ringhaul", "query", query, "--format", "json"]
    found = json.loads(run_command(command, running.env).out)
    (row,) = found if isinstance(found, list) else [found]
    total = sum(
        int(scores(first, min(_SCORES_AT_ONCE, records - first)).sum())
        for first in range(0, records, _SCORES_AT_ONCE)
    )
    if (int(row["n"]), int(row["total"])) != (records, total):
        raise RuntimeError(f"the table has {row}, and not {records} rows of {total} in all")


def run(size_bytes: int) -> None:
    """Load both ways and print the peaks. Raise if a bound is exceeded."""
    records = size_bytes // LINE_BYTES
    found = []
    with stage() as running:
        running.env["RINGHAUL_STORAGE_PRIVATE_ADDRESSES"] = "true"
        running.env["RINGHAUL_STREAMING_INPUT_BYTES_MIN"] = "0"
        for way in (TO_SSTABLES, STREAMING):
            print(f"loading {size_bytes / 1e9:.2f} GB, generated, {way} ...", flush=True)
            with running.worker(PROCESSES) as worker_pid:
                found.append(measure(running, worker_pid, way, records))
            show(found[-1])
    save_table(
        "sstable_memory" if size_bytes >= 10**9 else "sstable_memory_short",
        f"Peak memory of a load of {size_bytes / 1e9:.2f} GB that makes SSTables",
        ["way", "rows", "rows/s", "SSTables, GB", "worker processes, MB", "command, MB"],
        [
            [
                one.way,
                one.rows,
                round(one.rows / one.seconds),
                round(one.sstable_bytes / 1e9, 2),
                " and ".join(f"{mb:.0f}" for mb in sorted(one.children_mb)),
                round(one.command_mb),
            ]
            for one in found
        ],
    )
    if not all(one.is_bounded for one in found):
        raise SystemExit("a bound was passed")


def show(found: Measured) -> None:
    """Print the figures of one way."""
    print(
        f"  {found.rows:,} rows in {found.seconds:,.0f} s ({found.rows / found.seconds:,.0f} "
        f"rows/s), {found.sstables} SSTables of {found.sstable_bytes / 1e9:.2f} GB"
    )
    for mb in found.children_mb:
        print(f"  worker process  {mb:6.0f} MB  (bound {CHILD_MB_MAX})")
    print(f"  command         {found.command_mb:6.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sstable_memory", description=__doc__)
    parser.add_argument("--bytes", type=int, default=SIZE_BYTES)
    run(parser.parse_args().bytes)


if __name__ == "__main__":
    main()
