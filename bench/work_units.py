"""Claim: other work units do not make a process pool as fast.

The first article names two: the names of files to load, and buckets to query, each a task of a
pool. Beside them `ringhaul load` of the files and `ringhaul exec` of the query for all buckets.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.contents import check_rows, row_files
from bench.contest import arguments, contest, named
from bench.data import SMALL, Table
from bench.harness import DRIVER, OURS, Run, System, claim
from bench.peers import checked
from bench.site import Site, make_site
from bench.stage import Stage
from bench.systems import fill, ours
from bench.tools import Measured, run_program, run_ringhaul

ROWS = 200_000
FILES = 40
BUCKETS = 2_000
#: Rows to read for each row to load: reads are fast, and a job's start and end take half a second.
READ_ROWS = 10
FILES_OURS, FILES_THEIRS = "ringhaul load, files", "S0d pool, a file a task"
BUCKETS_OURS, BUCKETS_THEIRS = "ringhaul exec, buckets", "S0d pool, a bucket a task"


def _lines(rows: int, draw: random.Random) -> Iterator[str]:
    for number in range(rows):
        yield f"b{number % BUCKETS:04d},{number},{draw.gauss(18, 9):.3f}\n"


BUCKETED = Table(
    "bucketed",
    ("bucket", "seq", "reading"),
    "bucket text, seq bigint, reading double, PRIMARY KEY (bucket, seq)",
    _lines,
)


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""

    def choose(stage: Stage, worker_pid: int) -> Sequence[System]:
        buckets = make_site(stage, BUCKETED, READ_ROWS * rows, worker_pid)
        fill(buckets)
        return [*file_systems(make_site(stage, SMALL, rows, worker_pid)), *bucket_systems(buckets)]

    lines = contest(
        "work_units",
        f"{rows:,} rows by file, {READ_ROWS * rows:,} by bucket",
        choose,
        rounds=rounds,
    )
    print("\nclaims")
    for what, mine, theirs in (
        ("a file a task", FILES_OURS, FILES_THEIRS),
        ("a bucket a task", BUCKETS_OURS, BUCKETS_THEIRS),
    ):
        times = named(lines, mine).rows_s / named(lines, theirs).rows_s
        print(claim(f"times a pool with {what}", times, at_least=1.0))


def file_systems(site: Site) -> list[System]:
    """Return ours and the article's way with the site's records in several files."""
    folder = site.stage.folder / "files"
    files = split_file(site.path, folder, FILES)
    marks = ", ".join("?" * len(site.table.columns))
    insert = f"INSERT INTO {site.name} ({', '.join(site.table.columns)}) VALUES ({marks})"

    def run_it() -> Run:
        result, done = run_program(
            site.stage, "bench.seeds", "S0d-files", insert, str(folder), str(site.rows)
        )
        measured = checked(site, Measured(result["answers"], result["work_s"], done))
        return replace(measured, cpu_s=result["cpu_s"])

    return [
        ours(site, name=FILES_OURS, sources=files),
        site.system(FILES_THEIRS, DRIVER, run_it),
    ]


def split_file(path: Path, folder: Path, count: int) -> list[Path]:
    """Write the records of a CSV file to `count` files with its header."""
    header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    cuts = [len(lines) * number // count for number in range(count + 1)]
    folder.mkdir()
    files = []
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):
        files.append(folder / f"{number:03d}.csv")
        files[-1].write_text(header + "".join(lines[first:last]), encoding="utf-8")
    return files


def bucket_systems(site: Site) -> list[System]:
    """Return ours and the article's way of reading all buckets of a filled table."""
    params = site.stage.folder / "buckets.csv"
    params.write_text("bucket\n" + "".join(f"b{number:04d}\n" for number in range(BUCKETS)))
    select = f"SELECT * FROM {site.name} WHERE bucket = ?"

    def run_ours(folder: Path) -> Run:
        job = run_ringhaul(site, "exec", select, "--params", str(params), "-o", str(folder))
        check_rows(row_files(folder), site.rows)
        return Run(
            rows=site.rows,
            bytes_count=job.summary["bytes_written"],
            work_s=job.summary["elapsed_s"],
            whole_s=job.done.whole_s,
            cpu_s=job.cpu_s,
            worker_cpu_s=job.summary["cpu_us_per_record"] * BUCKETS / 1e6,
            rss_bytes_max=job.summary["worker_rss_bytes_max"],
        )

    def run_theirs(_: Path) -> Run:
        result, done = run_program(
            site.stage, "bench.seeds", "S0d-buckets", select, str(params), str(BUCKETS)
        )
        if result["answers"] != site.rows:
            raise RuntimeError(f"{result['answers']} rows were read, of {site.rows}")
        measured = Measured(site.rows, result["work_s"], done).run(site.path.stat().st_size)
        return replace(measured, cpu_s=result["cpu_s"])

    return [
        site.reader(BUCKETS_OURS, OURS, run_ours),
        site.reader(BUCKETS_THEIRS, DRIVER, run_theirs),
    ]


def main() -> None:
    options = arguments("work_units", __doc__, rows=ROWS, rounds=3)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
