"""The systems that load the file: ours, cqlsh COPY, and the server's own limit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.data import Table
from bench.harness import Run, System
from bench.processes import tree_usage
from bench.stage import KEYSPACE, Stage

#: What COPY says at its end: "1000000 rows imported from 1 files in 0 day, 0 hour, 0 minute, and
#: 27.583 seconds (0 skipped)."
_TOLD = re.compile(r"(\d+) rows imported from .* (\d+) minutes?,? (?:and )?([\d.]+) second")


def ours(
    stage: Stage, table: Table, path: Path, *, worker_pid: int, strategy: str = "pipeline"
) -> System:
    """`ringhaul load` with a standing worker."""

    def run() -> Run:
        before = tree_usage(worker_pid)
        summary, whole_s, client = _ringhaul(stage.env, table, path, "--strategy", strategy)
        after = tree_usage(worker_pid)
        return _ours(summary, path, whole_s, after.cpu_s - before.cpu_s + client, table, stage)

    return System(f"ringhaul {strategy}", run)


def ours_embedded(stage: Stage, table: Table, path: Path, *, processes: int) -> System:
    """`ringhaul load` with no broker: it starts its own workers, as a newcomer runs it."""

    def run() -> Run:
        summary, whole_s, client = _ringhaul(
            stage.env_embedded, table, path, "--workers", str(processes)
        )
        return _ours(summary, path, whole_s, client, table, stage)

    return System("ringhaul embedded", run)


def cqlsh_copy(stage: Stage, table: Table, path: Path, *, processes: int) -> System:
    """`COPY ... FROM` of cqlsh, with its defaults but for the number of processes."""

    def run() -> Run:
        columns = ", ".join(table.columns)
        copy = (
            f"COPY {KEYSPACE}.{table.name} ({columns}) FROM '{path}' "
            f"WITH HEADER = true AND NUMPROCESSES = {processes}"
        )
        ends = stage.endpoints
        command = [
            str(Path(sys.executable).parent / "cqlsh"),
            *("--request-timeout", "60", ends.contact_points[0], str(ends.port), "-e", copy),
        ]
        # cqlsh ends with 2 after any message, such as one of a batch that went well when retried.
        out, whole_s, cpu_s, rss = _timed(command, dict(stage.env_embedded), codes=(0, 2))
        told = _TOLD.search(out)
        if told is None:
            raise RuntimeError(f"cqlsh did not say what it did:\n{out[-2000:]}")
        rows = int(told[1])
        load_s = 60 * int(told[2] or 0) + float(told[3])
        _check(stage, table, rows)
        return Run(
            rows=rows,
            bytes_count=path.stat().st_size,
            load_s=load_s,
            whole_s=whole_s,
            cpu_s=cpu_s,
            rss_bytes_max=rss,
        )

    return System(f"cqlsh COPY, {processes} process{'es' if processes > 1 else ''}", run)


def limit(stage: Stage, table: Table, path: Path) -> System:
    """Frames encoded beforehand, replayed: what the server itself can take."""

    def run() -> Run:
        ends = stage.endpoints
        command = [
            *(sys.executable, "-m", "bench.limit", ends.contact_points[0], str(ends.port)),
            *(f"{KEYSPACE}.{table.name}", str(path)),
        ]
        out, _, _, rss = _timed(command, dict(stage.env_embedded))
        told = json.loads(out.splitlines()[-1])
        _check(stage, table, told["rows"])
        return Run(
            rows=told["rows"],
            bytes_count=path.stat().st_size,
            load_s=told["load_s"],
            whole_s=told["load_s"],  # encoding beforehand is not part of it
            cpu_s=told["cpu_s"],
            rss_bytes_max=rss,
        )

    return System("server's limit (replayed frames)", run)


def _ringhaul(
    env: dict[str, str], table: Table, path: Path, *options: str
) -> tuple[dict[str, object], float, float]:
    """(summary, whole seconds, CPU seconds of the command and what it waited for)."""
    command = [
        *(sys.executable, "-P", "-m", "producer", "load", str(path)),
        *("-t", f"{KEYSPACE}.{table.name}", "--json", "--progress", "none", *options),
    ]
    out, whole_s, cpu_s, _ = _timed(command, env)
    messages = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return next(m for m in messages if m["message_type"] == "summary"), whole_s, cpu_s


def _ours(
    summary: dict[str, object], path: Path, whole_s: float, cpu_s: float, table: Table, stage: Stage
) -> Run:
    if summary["state"] != "COMPLETE":
        raise RuntimeError(f"ringhaul ended {summary['state']}: {summary}")
    rows = int(str(summary["rows"]))
    _check(stage, table, rows)
    return Run(
        rows=rows,
        bytes_count=path.stat().st_size,
        load_s=float(str(summary["elapsed_s"])),
        whole_s=whole_s,
        cpu_s=cpu_s,
        rss_bytes_max=int(str(summary["worker_rss_bytes_max"])),
    )


def _timed(
    command: list[str], env: dict[str, str], codes: tuple[int, ...] = (0,)
) -> tuple[str, float, float, int]:
    """(stdout, whole seconds, CPU seconds, peak RSS of the largest process) of a command."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        # The usage of this child and of what it waited for, not of earlier ones.
        _, status, usage = os.wait4(process.pid, 0)
        whole_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        told, wrong = out.read().decode(), err.read().decode()
    if process.returncode not in codes:
        raise RuntimeError(f"{command[:6]} ended {process.returncode}:\n{wrong[-2000:]}")
    return told, whole_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _check(stage: Stage, table: Table, rows: int) -> None:
    """A load that lost rows has no speed."""
    found = stage.count(table)
    if found != rows:
        raise RuntimeError(f"{found} rows are in the table, {rows} were reported")
