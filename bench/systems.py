"""Ours, and the server's own limit, loading a file."""

from __future__ import annotations

from collections.abc import Sequence

from bench.harness import LIMIT, OURS, Median, Run, System, claim, of_limit
from bench.site import Site
from bench.tools import Job, run_program, run_ringhaul
from ringhaul.load.write.grouping import BATCH_PARTITIONS_MAX

#: What the server takes as single statements; see `limits`.
ROW_BY_ROW = "server's limit (replayed frames)"
_IN_BATCHES = "server's limit (replayed batches)"


def ours(site: Site, *, strategy: str = "pipeline", name: str | None = None) -> System:
    """`ringhaul load` with a standing worker, whose CPU counts too."""

    def run() -> Run:
        return _ours(site, run_ringhaul(site, *_load(site), "--strategy", strategy))

    return site.system(name or f"ringhaul {strategy}", OURS, run)


def ours_embedded(site: Site, *, processes: int) -> System:
    """`ringhaul load` with no broker: it starts its own workers, as a newcomer runs it."""

    def run() -> Run:
        job = run_ringhaul(site, *_load(site), "--workers", str(processes), embedded=True)
        return _ours(site, job)

    return site.system("ringhaul embedded", OURS, run)


def limits(site: Site, *, batch_rows: int = BATCH_PARTITIONS_MAX) -> list[System]:
    """What the server itself can take: row by row, and in batches."""
    return [_limit(site, 1, ROW_BY_ROW), _limit(site, batch_rows, _IN_BATCHES)]


def print_shares(lines: Sequence[Median], mine: Median) -> None:
    """Our rate beside what the server takes row by row, which is claimed, and beside the best."""
    for limit in (line for line in lines if line.name == ROW_BY_ROW):
        print(claim("share of the limit row by row", mine.rows_s / limit.rows_s, at_least=0.85))
        print(f"  of the better limit: {of_limit(lines, mine):.2f}")


def _limit(site: Site, rows: int, name: str) -> System:
    def run() -> Run:
        told, done = run_program(site.stage, "bench.limit", site.name, str(site.path), str(rows))
        site.check(told["rows"])
        return Run(
            rows=told["rows"],
            bytes_count=site.path.stat().st_size,
            work_s=told["work_s"],
            whole_s=told["work_s"],  # encoding beforehand is not part of it
            cpu_s=told["cpu_s"],
            rss_bytes_max=done.rss_bytes_max,
        )

    return site.system(name, LIMIT, run)


def fill(site: Site) -> None:
    """Load the site's file, for benches that read."""
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
