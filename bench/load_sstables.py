"""Rows streamed as SSTables, beside rows over CQL and cqlsh COPY, in interleaved rounds.

One machine also runs the Cassandra node. Each way ends when all rows can be read. The CPU of the
node counts: first until then, and then until it has compacted what it got.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import psutil

from bench.cassandra_tools import loader_command
from bench.command import run_command
from bench.contest import PROCESSES, contest, named, parser_of
from bench.data import KB1, SERIES, SMALL, Table
from bench.harness import COPY, OURS, Run, System, save_table
from bench.peers import COPY_STATEMENT
from bench.processes import tree_usage
from bench.site import Site, make_site
from bench.stage import KEYSPACE, Stage
from bench.tools import run_copy, run_ringhaul
from config.sections import cache_dir_default

ROWS = 5_000_000
TABLES = {table.name: table for table in (SMALL, KB1, SERIES)}
#: Table -> its saved results: rates, and CPU.
RESULTS = {
    "small": ("load_sstables", "load_sstables_cpu"),
    "kb1": ("load_sstables_kb1", "load_sstables_kb1_cpu"),
    "series": ("load_sstables_series", "load_sstables_series_cpu"),
}
DEFAULT, STREAMING, BY_COPY = "ringhaul", "ringhaul --via streaming", "cqlsh COPY"
LOADER = "--to-sstables, sstableloader"
#: The node counts as idle when it takes less than this share of a core, for so long.
_IDLE_SHARE, _IDLE_S = 0.1, 3.0


class NodeCpu(NamedTuple):
    """CPU of the node, in us a row."""

    until_readable: float
    afterwards: float  #: until it has compacted


class Meter:
    """Measures the node's CPU in the runs of each system."""

    def __init__(self, site: Site, *, settle_s_max: float = 120.0) -> None:
        self._pid = listener(site.stage.endpoints.port)
        self._settle_s_max = settle_s_max
        self.runs: dict[str, list[NodeCpu]] = defaultdict(list)

    def system(self, site: Site, name: str, family: str, run: Callable[[], Run]) -> System:
        """Return a system that loads the site's file by `run`, which does not check the table."""

        def metered() -> Run:
            before = self._cpu_s()
            done = run()
            readable = self._cpu_s()
            self._settle()
            after = self._cpu_s()
            site.check(done.rows)
            self.runs[name].append(
                NodeCpu(1e6 * (readable - before) / done.rows, 1e6 * (after - readable) / done.rows)
            )
            return done

        return site.system(name, family, metered)

    def median(self, name: str) -> NodeCpu:
        """Return the medians of one system."""
        runs = self.runs[name]
        return NodeCpu(*(statistics.median(figures) for figures in zip(*runs, strict=True)))

    def _settle(self) -> None:
        """Wait until the node is idle."""
        give_up_at = time.monotonic() + self._settle_s_max
        idle_s = 0.0
        while idle_s < _IDLE_S and time.monotonic() < give_up_at:
            before = self._cpu_s()
            time.sleep(0.5)
            idle_s = idle_s + 0.5 if self._cpu_s() - before < 0.5 * _IDLE_SHARE else 0.0

    def _cpu_s(self) -> float:
        return tree_usage(self._pid).cpu_s


def listener(port: int) -> int:
    """Return the process that listens on a port."""
    for found in psutil.net_connections(kind="tcp"):
        if found.status == psutil.CONN_LISTEN and found.laddr.port == port and found.pid:
            return int(found.pid)
    raise RuntimeError(f"no process of this user listens on {port}")


def loaded(site: Site, *options: str) -> Run:
    """Load the site's file; the table is not checked."""
    job = run_ringhaul(site, "load", str(site.path), "-t", site.name, *options)
    rows = int(job.summary["rows"])
    return Run(
        rows=rows,
        bytes_count=site.path.stat().st_size,
        work_s=job.summary["elapsed_s"],
        whole_s=job.done.whole_s,
        cpu_s=job.cpu_s,
        worker_cpu_s=job.summary["cpu_us_per_row"] * rows / 1e6,
        rss_bytes_max=job.summary["worker_rss_bytes_max"],
    )


def choose(site: Site, meter: Meter) -> list[System]:
    """Return the systems: ours over CQL, ours by streaming, cqlsh COPY."""

    def copied() -> Run:
        copy = COPY_STATEMENT.format(
            table=site.name,
            columns=", ".join(site.table.columns),
            path=site.path,
            processes=PROCESSES,
        )
        measured = run_copy(site.stage, copy)
        return measured.run(site.bytes_of(measured.rows))

    return [
        meter.system(site, DEFAULT, OURS, lambda: loaded(site)),
        meter.system(site, STREAMING, OURS, lambda: loaded(site, "--via", "streaming")),
        meter.system(site, BY_COPY, COPY, copied),
    ]


def by_loader(site: Site, meter: Meter) -> System:
    """`load --to-sstables`, then `sstableloader`, which takes seconds to start."""
    out = site.stage.folder / "sstables"

    def run() -> Run:
        shutil.rmtree(out, ignore_errors=True)
        written = loaded(site, "--to-sstables", str(out))
        loader = run_command(
            loader_command(
                site.stage.folder / "stack" / "local" / "layout.json",
                out / KEYSPACE / site.table.name,
                cache_dir=cache_dir_default(),
                scratch=site.stage.folder,
            ),
            os.environ,
        )
        return replace(
            written,
            work_s=written.work_s + loader.whole_s,
            whole_s=written.whole_s + loader.whole_s,
            cpu_s=written.cpu_s + loader.cpu_s,
        )

    return meter.system(site, LOADER, OURS, run)


def run(rows: int, rounds: int, table: Table = SMALL) -> None:
    """Run the bench and print its table, the CPU of client and node, and the ratios."""
    meters: list[Meter] = []
    name, name_cpu = RESULTS[table.name]

    def chosen(stage: Stage, worker_pid: int) -> Sequence[System]:
        site = make_site(stage, table, rows, worker_pid)
        meters.append(Meter(site))
        return [*choose(site, meters[0]), by_loader(site, meters[0])]

    lines = contest(name, f"load of {rows:,} rows of {table.name}", chosen, rounds=rounds)
    (meter,) = meters
    rows_of_table: list[list[str | float | int]] = []
    sums = {}
    print("\n  CPU, us a row: client, node until readable, node afterwards, sum")
    for line in lines:
        node = meter.median(line.name)
        sums[line.name] = line.cpu_us_per_row + node.until_readable
        figures = (line.cpu_us_per_row, *node, sums[line.name] + node.afterwards)
        rows_of_table.append([line.name, *(round(figure, 1) for figure in figures)])
        print(f"  {line.name:<32}", *(f"{figure:>8.1f}" for figure in figures))
    save_table(
        name_cpu,
        f"CPU of client and node, {rows:,} rows of {table.name}, us a row",
        ("system", "client", "node until readable", "node afterwards", "sum"),
        rows_of_table,
    )
    mine = named(lines, STREAMING)
    for other in (DEFAULT, BY_COPY):
        times = mine.rows_s_whole / named(lines, other).rows_s_whole
        print(
            f"  times {other}, whole commands: {times:.2f}; "
            f"CPU until readable: {sums[STREAMING] / sums[other]:.2f} of it"
        )


def main() -> None:
    parser = parser_of("load_sstables", __doc__, rows=ROWS, rounds=3)
    parser.add_argument("--table", choices=TABLES, default=SMALL.name, help="default small")
    options = parser.parse_args()
    run(options.rows, options.rounds, TABLES[options.table])


if __name__ == "__main__":
    main()
