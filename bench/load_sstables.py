"""Small rows as SSTables: written by `load --to-sstables`, brought in by `sstableloader`.

Beside the default way, interleaved, on one machine that also runs the Cassandra node. Both ways end
when all rows can be read. `sstableloader` is a JVM that takes seconds to start, so with few rows
it decides the result; the CPU of writing alone is printed, too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from bench.cassandra_tools import loader_command
from bench.command import run_command
from bench.contest import arguments, contest, named
from bench.data import SMALL
from bench.harness import OURS, Run, System
from bench.site import Site, make_site
from bench.stage import KEYSPACE, Stage
from bench.systems import ours
from bench.tools import run_ringhaul
from config.sections import cache_dir_default

ROWS = 200_000
_DEFAULT, _SSTABLES = "ringhaul pipeline", "ringhaul --to-sstables, sstableloader"


def by_sstables(site: Site) -> System:
    """`load --to-sstables` with a running worker, then `sstableloader`."""
    stage = site.stage
    out = stage.folder / "sstables"

    def run() -> Run:
        shutil.rmtree(out, ignore_errors=True)
        job = run_ringhaul(site, "load", str(site.path), "-t", site.name, "--to-sstables", str(out))
        loader = run_command(
            loader_command(
                stage.folder / "stack" / "local" / "layout.json",
                out / KEYSPACE / site.table.name,
                cache_dir=cache_dir_default(),
                scratch=stage.folder,
            ),
            os.environ,
        )
        rows = int(job.summary["rows"])
        site.check(rows)
        return Run(
            rows=rows,
            bytes_count=site.path.stat().st_size,
            work_s=job.summary["elapsed_s"] + loader.whole_s,
            whole_s=job.done.whole_s + loader.whole_s,
            cpu_s=job.cpu_s + loader.cpu_s,
            worker_cpu_s=job.summary["cpu_us_per_row"] * rows / 1e6,
            rss_bytes_max=job.summary["worker_rss_bytes_max"],
        )

    return site.system(_SSTABLES, OURS, run)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table and the ratios."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, SMALL, rows, worker_pid)
        return [ours(site), by_sstables(site)]

    lines = contest("load_sstables", f"{rows:,} small rows by SSTables", choose, rounds=rounds)
    usual, mine = named(lines, _DEFAULT), named(lines, _SSTABLES)
    print(f"\n  times the default, whole commands: {mine.rows_s_whole / usual.rows_s_whole:.2f}")
    print(
        f"  CPU of our workers, us a row: {mine.path_us_per_row:.2f} ({usual.path_us_per_row:.2f})"
    )


def main() -> None:
    options = arguments("load_sstables", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
