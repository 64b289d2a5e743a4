"""The peers: cqlsh COPY, DataStax Bulk Loader, and the patterns of articles on fast writes."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from bench.bulk_loader import bulk_loader_command
from bench.command import run_command
from bench.harness import BULK_LOADER, COPY, DRIVER, Run, System
from bench.site import Site

#: What COPY says at its end: "1000000 rows imported from 1 files in 0 day, 0 hour, 0 minute, and
#: 27.583 seconds (0 skipped)."
COPIED = re.compile(r"(\d+) rows imported from .* (\d+) minutes?,? (?:and )?([\d.]+) second")

#: Bulk Loader prints totals, failures and rows/s so far, again and again, the last of them its end:
#: "1,000,000 |      0 | 36,104 | 2.40 | 9.10 | 12.00 | 1.00".
BULK_LOADED = re.compile(r"^ *([\d,]+) \| +([\d,]+) \| +([\d,]+) \|", re.MULTILINE)


def cqlsh_copy(site: Site, *, processes: int) -> System:
    """`COPY ... FROM` of cqlsh, with its defaults but for the number of processes."""

    def run() -> Run:
        columns = ", ".join(site.table.columns)
        copy = (
            f"COPY {site.name} ({columns}) FROM '{site.path}' "
            f"WITH HEADER = true AND NUMPROCESSES = {processes}"
        )
        ends = site.stage.endpoints
        command = [
            str(Path(sys.executable).parent / "cqlsh"),
            *("--request-timeout", "60", ends.contact_points[0], str(ends.port), "-e", copy),
        ]
        # cqlsh ends with 2 after any message, such as one of a batch that went well when retried.
        done = run_command(command, site.stage.env_embedded, codes=(0, 2))
        told = COPIED.search(done.out)
        if told is None:
            raise RuntimeError(f"cqlsh did not say what it did:\n{done.out[-2000:]}")
        rows = int(told[1])
        site.check(rows)
        return Run(
            rows=rows,
            bytes_count=site.bytes_of(rows),
            load_s=60 * int(told[2]) + float(told[3]),
            whole_s=done.whole_s,
            cpu_s=done.cpu_s,
            rss_bytes_max=done.rss_bytes_max,
        )

    return site.system(f"cqlsh COPY, {processes} process{'es' * (processes > 1)}", COPY, run)


def bulk_loader(site: Site, *, batch_mode: str | None = None) -> System:
    """DataStax Bulk Loader with its defaults, or with another `--batch.mode`."""

    def run() -> Run:
        ends = site.stage.endpoints
        keyspace, _, table = site.name.partition(".")
        with tempfile.TemporaryDirectory(prefix="ringhaul-bench-") as logs:
            command = [
                *bulk_loader_command(),
                *("load", "-url", str(site.path), "-header", "true", "-k", keyspace, "-t", table),
                *("-h", ends.contact_points[0], "-port", str(ends.port), "-logDir", logs),
                *(("--batch.mode", batch_mode) if batch_mode else ()),
            ]
            done = run_command(command, site.stage.env_embedded)
        told = BULK_LOADED.findall(done.err)
        if not told:
            raise RuntimeError(f"Bulk Loader did not say what it did:\n{done.err[-2000:]}")
        rows, failed, rows_s = (int(text.replace(",", "")) for text in told[-1])
        if failed:
            raise RuntimeError(f"Bulk Loader failed on {failed} rows:\n{done.err[-2000:]}")
        site.check(rows)
        return Run(
            rows=rows,
            bytes_count=site.bytes_of(rows),
            load_s=rows / rows_s,
            whole_s=done.whole_s,
            cpu_s=done.cpu_s,
            rss_bytes_max=done.rss_bytes_max,
        )

    mode = "default" if batch_mode is None else batch_mode.lower().replace("_", " ")
    return site.system(f"Bulk Loader, {mode}", BULK_LOADER, run)


def driver_pattern(site: Site, pattern: str, label: str, *, rows: int) -> System:
    """A pattern of `bench.seeds`, over the first `rows` records of the file."""

    def run() -> Run:
        ends = site.stage.endpoints
        command = [
            *(sys.executable, "-m", "bench.seeds", pattern, ends.contact_points[0]),
            *(str(ends.port), site.name, str(site.path), str(rows)),
        ]
        done = run_command(command, site.stage.env_embedded)
        told = json.loads(done.out.splitlines()[-1])
        site.check(told["rows"])
        return Run(
            rows=told["rows"],
            bytes_count=site.bytes_of(told["rows"]),
            load_s=told["load_s"],
            whole_s=done.whole_s,
            cpu_s=done.cpu_s,
            rss_bytes_max=done.rss_bytes_max,
        )

    share = "" if rows >= site.rows else f" ({rows // 1000}k rows)"
    return site.system(f"{label}{share}", DRIVER, run)
