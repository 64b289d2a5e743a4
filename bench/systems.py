"""ringhaul, and the server's own limit, loading a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.harness import LIMIT, OURS, Median, Run, System, claim, of_limit
from bench.site import Site
from bench.tools import Job, run_program, run_ringhaul
from ringhaul.load.write.grouping import BATCH_PARTITIONS_MAX

#: The server's limit with single statements; see `limits`.
ROW_BY_ROW = "server's limit (replayed frames)"
_IN_BATCHES = "server's limit (replayed batches)"


def ours(
    site: Site,
    *,
    strategy: str = "pipeline",
    name: str | None = None,
    sources: Sequence[Path] | None = None,
) -> System:
    """`ringhaul load` with a running worker, whose CPU counts too.

    `sources`: the site's records as other files.
    """

    def run() -> Run:
        command = ["load", *map(str, sources or [site.path]), "-t", site.name]
        return _ours(site, run_ringhaul(site, *command, "--strategy", strategy))

    return site.system(name or f"ringhaul {strategy}", OURS, run)


def ours_embedded(site: Site, *, processes: int) -> System:
    """`ringhaul load` without a broker: it starts embedded workers, as a newcomer would run it."""

    def run() -> Run:
        job = run_ringhaul(site, *_load(site), "--workers", str(processes), embedded=True)
        return _ours(site, job)

    return site.system("ringhaul embedded", OURS, run)


def limits(site: Site, *, batch_rows: int = BATCH_PARTITIONS_MAX) -> list[System]:
    """The server's own limits: row by row, and in batches."""
    return [_limit(site, 1, ROW_BY_ROW), _limit(site, batch_rows, _IN_BATCHES)]


def print_shares(lines: Sequence[Median], mine: Median) -> None:
    """Print the rate as a share of the row-by-row limit, which is claimed, and of the best one."""
    for limit in (line for line in lines if line.name == ROW_BY_ROW):
        print(claim("share of the limit row by row", mine.rows_s / limit.rows_s, at_least=0.85))
        print(f"  of the better limit: {of_limit(lines, mine):.2f}")


def _limit(site: Site, rows: int, name: str) -> System:
    def run() -> Run:
        result, done = run_program(site.stage, "bench.limit", site.name, str(site.path), str(rows))
        site.check(result["rows"])
        return Run(
            rows=result["rows"],
            bytes_count=site.path.stat().st_size,
            work_s=result["work_s"],
            whole_s=result["work_s"],  # without the encoding of the frames
            cpu_s=result["cpu_s"],
            rss_bytes_max=done.rss_bytes_max,
        )

    return site.system(name, LIMIT, run)


def fill(site: Site) -> None:
    """Load the site's file, for read benches."""
    _ours(site, run_ringhaul(site, *_load(site)))


def _load(site: Site) -> list[str]:
    return ["load", str(site.path), "-t", site.name]


def _ours(site: Site, job: Job) -> Run:
    rows = int(job.summary["rows"])
    site.check(rows)
    return Run(
        rows=rows,
        bytes_count=site.path.stat().st_size,
        work_s=job.summary["elapsed_s"],
        whole_s=job.done.whole_s,
        cpu_s=job.cpu_s,
        worker_cpu_s=job.summary["cpu_us_per_row"] * rows / 1e6,
        rss_bytes_max=job.summary["worker_rss_bytes_max"],
    )
