"""ringhaul, and the server's own limit, reading a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from bench.contents import check_contents, check_rows, row_files
from bench.harness import LIMIT, OURS, Run, System
from bench.site import Site
from bench.tools import Job, counted, run_program, run_ringhaul


def unload(site: Site, *, kind: str) -> System:
    """`ringhaul unload` to files of a kind, with a running worker, whose CPU counts too."""
    check_once = _once()

    def run(folder: Path) -> Run:
        job = run_ringhaul(site, "unload", "-t", site.name, "-o", str(folder), "--format", kind)
        files = row_files(folder)
        check_rows(files, site.rows)
        check_once(lambda: check_contents(files, site.path, site.schema))
        return _read(job, site.rows, bytes_count=job.summary["bytes_written"])

    return site.reader(f"ringhaul unload, {kind}", OURS, run)


def count(site: Site) -> System:
    """`ringhaul count`."""

    def run(_: Path) -> Run:
        job = run_ringhaul(site, "count", "-t", site.name, "--format", "csv")
        found = counted(job.done.out)
        if found != site.rows:
            raise RuntimeError(f"{found} rows were counted, {site.rows} are in {site.name}")
        return _read(job, site.rows, bytes_count=job.summary["bytes_read"])

    return site.reader("ringhaul count", OURS, run)


def query(site: Site, select: str, check: Callable[[Path], None]) -> System:
    """`ringhaul query` with a SELECT; `check` checks its result."""

    def run(folder: Path) -> Run:
        result = folder / "result.csv"
        job = run_ringhaul(site, "query", select, "-o", str(result))
        check(result)
        return _read(job, site.rows, bytes_count=job.summary["bytes_read"])

    return site.reader("ringhaul query", OURS, run)


def lookup(site: Site, keys: Path, keys_count: int) -> System:
    """`ringhaul lookup` of all columns."""
    check_once = _once()

    def check(files: list[Path]) -> None:
        wanted = pa.array(keys.read_text().split()[1:])
        check_contents(files, site.path, site.schema, wanted)

    def run(folder: Path) -> Run:
        job = run_ringhaul(site, "lookup", "-t", site.name, "--keys", str(keys), "-o", str(folder))
        files = row_files(folder)
        check_rows(files, keys_count)
        check_once(lambda: check(files))
        return _answered(job, keys_count)

    return site.reader("ringhaul lookup", OURS, run)


def execute(site: Site, statement: str, params: Path, rows: int) -> System:
    """`ringhaul exec` of a SELECT with one row for each row of values."""

    def run(folder: Path) -> Run:
        job = run_ringhaul(site, "exec", statement, "--params", str(params), "-o", str(folder))
        check_rows(row_files(folder), rows)
        return _answered(job, rows)

    return site.reader("ringhaul exec", OURS, run)


def read_limit(site: Site, columns: tuple[str, ...]) -> System:
    """Token ranges paged over plain sockets: the server's own limit."""

    def run(_: Path) -> Run:
        return _replayed(site, site.rows, "bench.read_limit", site.name, ", ".join(columns))

    return site.reader("server's limit (pages dropped)", LIMIT, run)


def select_limit(site: Site, statement: str, keys: Path, rows: int, *, each: int = 1) -> System:
    """Prepared requests, replayed; of `each` keys if the marker is a list."""

    def run(_: Path) -> Run:
        return _replayed(site, rows, "bench.select_limit", statement, str(keys), str(each))

    lists = f" of {each} keys" if each > 1 else ""
    return site.reader(f"server's limit (requests{lists})", LIMIT, run)


def _replayed(site: Site, rows: int, program: str, *arguments: str) -> Run:
    result, done = run_program(site.stage, program, *arguments)
    if result["rows"] != rows:
        raise RuntimeError(f"{program} saw {result['rows']} rows, of {rows}")
    return Run(
        rows=rows,
        bytes_count=result["bytes"],
        work_s=result["work_s"],
        whole_s=result["work_s"],  # without preparing the requests
        cpu_s=result["cpu_s"],
        rss_bytes_max=done.rss_bytes_max,
    )


def _read(job: Job, rows: int, *, bytes_count: int) -> Run:
    if job.summary["rows_read"] != rows:
        raise RuntimeError(f"{job.summary['rows_read']} rows were read, of {rows}")
    return _run(job, rows, bytes_count, job.summary["cpu_us_per_row"])


def _answered(job: Job, rows: int) -> Run:
    if job.summary["answered"] != rows or job.summary["rows"] != rows:
        raise RuntimeError(f"not all of {rows} were answered with a row: {job.summary}")
    return _run(job, rows, job.summary["bytes_written"], job.summary["cpu_us_per_record"])


def _run(job: Job, rows: int, bytes_count: int, us_per_row: float) -> Run:
    return Run(
        rows=rows,
        bytes_count=bytes_count,
        work_s=job.summary["elapsed_s"],
        whole_s=job.done.whole_s,
        cpu_s=job.cpu_s,
        worker_cpu_s=us_per_row * rows / 1e6,
        rss_bytes_max=job.summary["worker_rss_bytes_max"],
    )


def _once() -> Callable[[Callable[[], None]], None]:
    """Return a function that runs only its first check: comparing all values is slow."""
    done = False

    def call(check: Callable[[], None]) -> None:
        nonlocal done
        if not done:
            check()
            done = True

    return call
