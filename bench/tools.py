"""The tools that are compared, as commands: ringhaul, cqlsh, Bulk Loader and our own programs."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.bulk_loader import bulk_loader_command
from bench.command import Done, run_command
from bench.harness import Run
from bench.processes import tree_usage
from bench.site import Site
from bench.stage import Stage

#: What COPY says at its end: "1000000 rows imported from 1 files in 0 day, 0 hour, 0 minute, and
#: 27.583 seconds (0 skipped)."; below a second: "20000 rows exported to 1 files in 0.470 seconds."
COPIED = re.compile(
    r"(\d+) rows (?:imported from|exported to) \d+ files in "
    r"(?:.* (\d+) minutes?,? (?:and )?)?([\d.]+) second"
)

#: Bulk Loader prints totals, failures and rows/s so far, again and again, the last of them its end:
#: "1,000,000 |      0 | 36,104 | 2.40 | 9.10 | 12.00 | 1.00".
BULK_LOADED = re.compile(r"^ *([\d,]+) \| +([\d,]+) \| +([\d,]+) \|", re.MULTILINE)


class Told(NamedTuple):
    """What a tool says of its work, and what it cost."""

    rows: int
    work_s: float
    done: Done

    def run(self, bytes_count: int) -> Run:
        """The run that this was, over so many bytes."""
        return Run(
            rows=self.rows,
            bytes_count=bytes_count,
            work_s=self.work_s,
            whole_s=self.done.whole_s,
            cpu_s=self.done.cpu_s,
            rss_bytes_max=self.done.rss_bytes_max,
        )


class Job(NamedTuple):
    """The summary of a ringhaul command, and what it cost."""

    summary: Mapping[str, Any]
    cpu_s: float  #: of the command and the workers
    done: Done


def run_ringhaul(site: Site, *arguments: str, embedded: bool = False) -> Job:
    """`ringhaul ARGUMENTS` to the end of its job, with the standing worker or its own ones.

    Raises `RuntimeError` when it is not complete.
    """
    command = [*(sys.executable, "-P", "-m", "producer"), *arguments]
    command += ["--json", "--progress", "none"]
    before = tree_usage(site.worker_pid)
    done = run_command(command, site.stage.env_embedded if embedded else site.stage.env)
    after = tree_usage(site.worker_pid)
    summary = summary_of(done.out)
    if summary["state"] != "COMPLETE":
        raise RuntimeError(f"ringhaul ended {summary['state']}: {summary}")
    # Of embedded workers the kernel tells the CPU with the command that started them.
    standing_s = 0.0 if embedded else after.cpu_s - before.cpu_s
    return Job(summary, done.cpu_s + standing_s, done)


def summary_of(out: str) -> dict[str, Any]:
    """The summary among what `ringhaul ... --json` prints."""
    messages = (json.loads(line) for line in out.splitlines() if line.startswith("{"))
    return next(m for m in messages if m.get("message_type") == "summary")


def counted(out: str) -> int:
    """The number that a count prints: of the lines that are one, the last."""
    return int([line for line in out.splitlines() if line.strip().isdigit()][-1])


def run_cqlsh(
    stage: Stage, statement: str, *, timeout_s: int = 60, codes: Sequence[int] = (0,)
) -> Done:
    """`cqlsh -e STATEMENT`."""
    ends = stage.endpoints
    command = [
        *(str(Path(sys.executable).parent / "cqlsh"), "--request-timeout", str(timeout_s)),
        *(ends.contact_points[0], str(ends.port), "-e", statement),
    ]
    return run_command(command, stage.env_embedded, codes=codes)


def run_copy(stage: Stage, copy: str) -> Told:
    """`COPY ...` by cqlsh."""
    # cqlsh ends with 2 after any message, such as one of a batch that went well when retried.
    done = run_cqlsh(stage, copy, codes=(0, 2))
    told = COPIED.search(done.out)
    if told is None:
        raise RuntimeError(f"cqlsh did not say what it did:\n{done.out[-2000:]}")
    return Told(int(told[1]), 60 * int(told[2] or 0) + float(told[3]), done)


def run_bulk_loader(stage: Stage, command: str, *arguments: str) -> Told:
    """DataStax Bulk Loader's `load` or `unload`. Raises `RuntimeError` when rows failed."""
    ends = stage.endpoints
    with tempfile.TemporaryDirectory(prefix="ringhaul-bench-") as logs:
        done = run_command(
            [
                *(*bulk_loader_command(), command, *arguments),
                *("-h", ends.contact_points[0], "-port", str(ends.port), "-logDir", logs),
            ],
            stage.env_embedded,
        )
    told = BULK_LOADED.findall(done.err)
    if not told:
        raise RuntimeError(f"Bulk Loader did not say what it did:\n{done.err[-2000:]}")
    rows, failed, rows_s = (int(text.replace(",", "")) for text in told[-1])
    if failed:
        raise RuntimeError(f"Bulk Loader failed on {failed} rows:\n{done.err[-2000:]}")
    return Told(rows, rows / rows_s, done)


def run_program(stage: Stage, module: str, *arguments: str) -> tuple[dict[str, Any], Done]:
    """`python -m MODULE HOST PORT ARGUMENTS`, which prints a line of JSON at its end."""
    ends = stage.endpoints
    command = [sys.executable, "-m", module, ends.contact_points[0], str(ends.port), *arguments]
    done = run_command(command, stage.env_embedded)
    return json.loads(done.out.splitlines()[-1]), done
