"""The peers of reading: cqlsh, DataStax Bulk Loader, the driver, and patterns of articles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.command import run_command
from bench.contents import check_rows, row_files
from bench.harness import BULK_LOADER, COPY, CQLSH, DRIVER, Run, System
from bench.site import Site
from bench.stage import KEYSPACE
from bench.tools import (
    Measured,
    counted,
    run_bulk_loader,
    run_copy,
    run_cqlsh,
    run_program,
)

#: For a count in one request, which takes longer for a larger table.
COUNT_TIMEOUT_S = 600


def copy_to(site: Site, *, processes: int) -> System:
    """cqlsh's `COPY ... TO` with its defaults, except for the number of processes."""

    def run(folder: Path) -> Run:
        return _copied(site, folder / "copy.csv", processes)

    return site.reader(f"cqlsh COPY TO, {processes} process{'es' * (processes > 1)}", COPY, run)


def _copied(site: Site, path: Path, processes: int) -> Run:
    columns = ", ".join(site.table.columns)
    options = f"HEADER = true AND NUMPROCESSES = {processes}"
    measured = run_copy(site.stage, f"COPY {site.name} ({columns}) TO '{path}' WITH {options}")
    check_rows([path], site.rows)
    return measured.run(path.stat().st_size)


def copy_then_compute(
    site: Site, select: str, check: Callable[[Path], None], *, processes: int
) -> System:
    """`COPY ... TO` and a computation over its file; `check` checks the result."""

    def run(folder: Path) -> Run:
        path, result = folder / "copy.csv", folder / "result.csv"
        copied = _copied(site, path, processes)
        command = [sys.executable, "-m", "bench.compute", select, str(path), str(result)]
        done = run_command(command, site.stage.env_embedded)
        check(result)
        return Run(
            rows=site.rows,
            bytes_count=copied.bytes_count,
            work_s=copied.work_s + done.whole_s,
            whole_s=copied.whole_s + done.whole_s,
            cpu_s=copied.cpu_s + done.cpu_s,
            rss_bytes_max=max(copied.rss_bytes_max, done.rss_bytes_max),
        )

    name = f"cqlsh COPY TO, {processes} process{'es' * (processes > 1)}, and duckdb"
    return site.reader(name, COPY, run)


def cqlsh_count(site: Site) -> System:
    """`SELECT count(*)` with cqlsh. Raises `RuntimeError` if the server times out, as it may."""
    select = f"SELECT count(*) FROM {site.name}"

    def run(_: Path) -> Run:
        done = run_cqlsh(site.stage, select, timeout_s=COUNT_TIMEOUT_S)
        found = counted(done.out)
        if found != site.rows:
            raise RuntimeError(f"{found} rows were counted, {site.rows} are in {site.name}")
        return Measured(found, done.whole_s, done).run(site.bytes_of(found))

    return site.reader("cqlsh SELECT count(*)", CQLSH, run)


def bulk_loader_unload(site: Site, *, files: str | None = None) -> System:
    """Bulk Loader's `unload` with its defaults, or so many files at a time (`2C`: two a core)."""
    options = ["-maxConcurrentFiles", files] if files else []

    def run(folder: Path) -> Run:
        table = ["-k", KEYSPACE, "-t", site.table.name]
        return _unloaded(site, folder, *table, *options)

    return site.reader(f"Bulk Loader unload, {files or 'default'}", BULK_LOADER, run)


def bulk_loader_keys(site: Site) -> System:
    """An unload of the keys, the nearest to a count: Bulk Loader's own is not on Maven Central."""
    keys = ", ".join(site.schema.partition_key)

    def run(folder: Path) -> Run:
        return _unloaded(site, folder, "-query", f"SELECT {keys} FROM {site.name}")

    return site.reader("Bulk Loader unload of the keys", BULK_LOADER, run)


def _unloaded(site: Site, folder: Path, *options: str) -> Run:
    measured = run_bulk_loader(
        site.stage, "unload", "-url", str(folder), "-header", "true", *options
    )
    files = row_files(folder)
    check_rows(files, site.rows)
    return measured.run(sum(path.stat().st_size for path in files))


def select_pattern(
    site: Site,
    pattern: str,
    label: str,
    *,
    statement: str,
    values: Path,
    rows: int,
    processes: int = 0,
    in_flight: int = 0,
) -> System:
    """A pattern of `bench.seeds` over the first `rows` rows of values, each with one result.

    `processes`, `in_flight`: 0 for those of the article.
    """

    def run(_: Path) -> Run:
        result, done = run_program(
            site.stage,
            "bench.seeds",
            *(pattern, statement, str(values), str(rows), str(processes), str(in_flight)),
        )
        if result["answers"] != rows:
            raise RuntimeError(f"{pattern} got {result['answers']} rows, of {rows}")
        measured = Measured(rows, result["work_s"], done).run(values.stat().st_size)
        # With few rows, the start of the program would be most of its CPU.
        return replace(measured, cpu_s=result["cpu_s"])

    return site.reader(f"{label} ({rows // 1000}k)", DRIVER, run)
