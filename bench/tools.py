"""The compared tools as commands: ringhaul, cqlsh, Bulk Loader and the bench's programs."""

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

#: COPY's last message: "1000000 rows imported from 1 files in 0 day, 0 hour, 0 minute, and
#: 27.583 seconds (0 skipped)."; below a second: "20000 rows exported to 1 files in 0.470 seconds."
COPIED = re.compile(
    r"(\d+) rows (?:imported from|exported to) \d+ files in "
    r"(?:.* (\d+) minutes?,? (?:and )?)?([\d.]+) second"
)

#: Bulk Loader prints totals, failures and rows/s so far repeatedly; the last line is its result:
#: "1,000,000 |      0 | 36,104 | 2.40 | 9.10 | 12.00 | 1.00".
BULK_LOADED = re.compile(r"^ *([\d,]+) \| +([\d,]+) \| +([\d,]+) \|", re.MULTILINE)


class Measured(NamedTuple):
    """A tool's report of its work, and its cost."""

    rows: int
    work_s: float
    done: Done

    def run(self, bytes_count: int) -> Run:
        """Return this as a run over so many bytes."""
        return Run(
            rows=self.rows,
            bytes_count=bytes_count,
            work_s=self.work_s,
            whole_s=self.done.whole_s,
            cpu_s=self.done.cpu_s,
            rss_bytes_max=self.done.rss_bytes_max,
        )


class Job(NamedTuple):
    """The summary of a ringhaul command, and its cost."""

    summary: Mapping[str, Any]
    cpu_s: float  #: of the command and the workers
    done: Done


def run_ringhaul(site: Site, *arguments: str, embedded: bool = False) -> Job:
    """Run `ringhaul ARGUMENTS` to the end of its job, with the running worker or embedded ones.

    Raise `RuntimeError` if the job is not complete.
    """
    command = [*(sys.executable, "-P", "-m", "ringhaul"), *arguments]
    command += ["--json", "--progress", "none"]
    before = tree_usage(site.worker_pid)
    done = run_command(command, site.stage.env_embedded if embedded else site.stage.env)
    after = tree_usage(site.worker_pid)
    summary = summary_of(done.out)
    if summary["state"] != "COMPLETE":
        raise RuntimeError(f"ringhaul ended {summary['state']}: {summary}")
    # The kernel counts the CPU of embedded workers with the command that started them.
    standing_s = 0.0 if embedded else after.cpu_s - before.cpu_s
    return Job(summary, done.cpu_s + standing_s, done)


def summary_of(out: str) -> dict[str, Any]:
    """Return the summary from the output of `ringhaul ... --json`."""
    messages = (json.loads(line) for line in out.splitlines() if line.startswith("{"))
    return next(m for m in messages if m.get("message_type") == "summary")


def counted(out: str) -> int:
    """Return the number that a count prints: the last line that is a number."""
    return int([line for line in out.splitlines() if line.strip().isdigit()][-1])


def run_cqlsh(
    stage: Stage, statement: str, *, timeout_s: int = 60, codes: Sequence[int] = (0,)
) -> Done:
    """Run `cqlsh -e STATEMENT`."""
    ends = stage.endpoints
    command = [
        *(str(Path(sys.executable).parent / "cqlsh"), "--request-timeout", str(timeout_s)),
        *(ends.contact_points[0], str(ends.port), "-e", statement),
    ]
    return run_command(command, stage.env_embedded, codes=codes)


def run_copy(stage: Stage, copy: str) -> Measured:
    """Run `COPY ...` with cqlsh."""
    # cqlsh exits with 2 after any message, such as one about a batch whose retry succeeded.
    done = run_cqlsh(stage, copy, codes=(0, 2))
    copied = COPIED.search(done.out)
    if copied is None:
        raise RuntimeError(f"cqlsh did not report its result:\n{done.out[-2000:]}")
    return Measured(int(copied[1]), 60 * int(copied[2] or 0) + float(copied[3]), done)


def run_bulk_loader(stage: Stage, command: str, *arguments: str) -> Measured:
    """Run DataStax Bulk Loader's `load` or `unload`. Raise `RuntimeError` if rows failed."""
    ends = stage.endpoints
    with tempfile.TemporaryDirectory(prefix="ringhaul-bench-") as logs:
        done = run_command(
            [
                *(*bulk_loader_command(), command, *arguments),
                *("-h", ends.contact_points[0], "-port", str(ends.port), "-logDir", logs),
            ],
            stage.env_embedded,
        )
    reports = BULK_LOADED.findall(done.err)
    if not reports:
        raise RuntimeError(f"Bulk Loader did not report its result:\n{done.err[-2000:]}")
    rows, failed, rows_s = (int(text.replace(",", "")) for text in reports[-1])
    if failed:
        raise RuntimeError(f"Bulk Loader failed on {failed} rows:\n{done.err[-2000:]}")
    return Measured(rows, rows / rows_s, done)


def run_program(stage: Stage, module: str, *arguments: str) -> tuple[dict[str, Any], Done]:
    """Run `python -m MODULE HOST PORT ARGUMENTS`, which prints a line of JSON at its end."""
    ends = stage.endpoints
    command = [sys.executable, "-m", module, ends.contact_points[0], str(ends.port), *arguments]
    done = run_command(command, stage.env_embedded)
    return json.loads(done.out.splitlines()[-1]), done
