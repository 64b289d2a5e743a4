"""Ours, and the server's own limit."""

from __future__ import annotations

import json
import sys
from typing import Any

from bench.command import Done, run_command
from bench.harness import LIMIT, OURS, Run, System
from bench.processes import tree_usage
from bench.site import Site


def ours(site: Site, *, strategy: str = "pipeline", name: str | None = None) -> System:
    """`ringhaul load` with a standing worker, whose CPU counts too."""

    def run() -> Run:
        before = tree_usage(site.worker_pid)
        done = _load(site, site.stage.env, "--strategy", strategy)
        after = tree_usage(site.worker_pid)
        return _ours(site, done, done.cpu_s + after.cpu_s - before.cpu_s)

    return site.system(name or f"ringhaul {strategy}", OURS, run)


def ours_embedded(site: Site, *, processes: int) -> System:
    """`ringhaul load` with no broker: it starts its own workers, as a newcomer runs it."""

    def run() -> Run:
        done = _load(site, site.stage.env_embedded, "--workers", str(processes))
        return _ours(site, done, done.cpu_s)

    return site.system("ringhaul embedded", OURS, run)


def limit(site: Site) -> System:
    """Frames encoded beforehand, replayed: what the server itself can take."""

    def run() -> Run:
        ends = site.stage.endpoints
        command = [
            *(sys.executable, "-m", "bench.limit", ends.contact_points[0], str(ends.port)),
            *(site.name, str(site.path)),
        ]
        done = run_command(command, site.stage.env_embedded)
        told = json.loads(done.out.splitlines()[-1])
        site.check(told["rows"])
        return Run(
            rows=told["rows"],
            bytes_count=site.path.stat().st_size,
            load_s=told["load_s"],
            whole_s=told["load_s"],  # encoding beforehand is not part of it
            cpu_s=told["cpu_s"],
            rss_bytes_max=done.rss_bytes_max,
        )

    return site.system("server's limit (replayed frames)", LIMIT, run)


def _load(site: Site, env: dict[str, str], *options: str) -> Done:
    command = [
        *(sys.executable, "-P", "-m", "producer", "load", str(site.path)),
        *("-t", site.name, "--json", "--progress", "none", *options),
    ]
    return run_command(command, env)


def _ours(site: Site, done: Done, cpu_s: float) -> Run:
    messages = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    summary: dict[str, Any] = next(m for m in messages if m["message_type"] == "summary")
    if summary["state"] != "COMPLETE":
        raise RuntimeError(f"ringhaul ended {summary['state']}: {summary}")
    rows = int(summary["rows"])
    site.check(rows)
    return Run(
        rows=rows,
        bytes_count=site.path.stat().st_size,
        load_s=summary["elapsed_s"],
        whole_s=done.whole_s,
        cpu_s=cpu_s,
        worker_cpu_s=summary["cpu_us_per_row"] * rows / 1e6,
        rss_bytes_max=summary["worker_rss_bytes_max"],
    )
