"""The peers of loading: cqlsh COPY, DataStax Bulk Loader, and patterns of articles."""

from __future__ import annotations

from dataclasses import replace

from bench.harness import BULK_LOADER, COPY, DRIVER, Run, System
from bench.site import Site
from bench.stage import KEYSPACE
from bench.tools import Measured, run_bulk_loader, run_copy, run_program

#: COPY with its defaults, except for the number of processes.
COPY_STATEMENT = (
    "COPY {table} ({columns}) FROM '{path}' WITH HEADER = true AND NUMPROCESSES = {processes}"
)


def cqlsh_copy(site: Site, *, processes: int) -> System:
    """cqlsh's `COPY ... FROM` with its defaults, except for the number of processes."""

    def run() -> Run:
        copy = COPY_STATEMENT.format(
            table=site.name,
            columns=", ".join(site.table.columns),
            path=site.path,
            processes=processes,
        )
        return checked(site, run_copy(site.stage, copy))

    return site.system(f"cqlsh COPY, {processes} process{'es' * (processes > 1)}", COPY, run)


def bulk_loader(site: Site, *, batch_mode: str | None = None) -> System:
    """DataStax Bulk Loader with its defaults, or with another `--batch.mode`."""

    def run() -> Run:
        options = ["-k", KEYSPACE, "-t", site.table.name, "-url", str(site.path)]
        options += ["-header", "true"]
        if batch_mode:
            options += ["--batch.mode", batch_mode]
        return checked(site, run_bulk_loader(site.stage, "load", *options))

    mode = "default" if batch_mode is None else batch_mode.lower().replace("_", " ")
    return site.system(f"Bulk Loader, {mode}", BULK_LOADER, run)


def driver_pattern(
    site: Site, pattern: str, label: str, *, rows: int, processes: int = 0, in_flight: int = 0
) -> System:
    """A pattern of `bench.seeds`, over the first `rows` records of the file.

    `processes`, `in_flight`: 0 for those of the article.
    """
    columns = site.table.columns
    marks = ", ".join("?" * len(columns))
    insert = f"INSERT INTO {site.name} ({', '.join(columns)}) VALUES ({marks})"

    def run() -> Run:
        result, done = run_program(
            site.stage,
            "bench.seeds",
            *(pattern, insert, str(site.path), str(rows), str(processes), str(in_flight)),
        )
        measured = checked(site, Measured(result["queries"], result["work_s"], done))
        # With few rows, the start of the program would be most of its CPU.
        return replace(measured, cpu_s=result["cpu_s"])

    share = "" if rows >= site.rows else f" ({rows // 1000}k rows)"
    return site.system(f"{label}{share}", DRIVER, run)


def checked(site: Site, measured: Measured) -> Run:
    """Return the run, after comparing the rows in the table with those reported."""
    site.check(measured.rows)
    return measured.run(site.bytes_of(measured.rows))
