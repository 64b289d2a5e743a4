"""Which pool for `ringhaul worker`: prefork, solo, and why not threads or green threads.

First the work of a unit without a server (reading, converting, EXECUTE frames): the same file as
often as there are processes, threads or green threads, all at the same time. Then a load by a
worker of each pool that `ringhaul worker` accepts.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from cassandra import ConsistencyLevel

from bench.command import run_command
from bench.contest import arguments
from bench.data import SMALL, data_file
from bench.harness import claim, interleave, machine, medians, report, save, save_table
from bench.site import make_site
from bench.stage import KEYSPACE, stage
from bench.systems import ours
from config.sections import cache_dir_default
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cql.frames import execute_frames
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import Position
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.reading import read_records
from ringhaul.records.rows import RowEncoder
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.source import SourceFile

ROWS = 400_000
#: Ways to encode, and how many units at a time.
WAYS = (
    ("alone", 1),
    ("processes", 2),
    ("threads", 2),
    ("greenlets", 2),
    ("processes", 4),
    ("threads", 4),
    ("greenlets", 4),
)
#: Pools that a worker has, and its processes.
POOLS = (("prefork", 1), ("prefork", 2), ("solo", 1))


def encode(path: Path) -> None:
    """Read, convert and encode all records of a file of `SMALL`, as a worker does."""
    definitions = (part.split() for part in SMALL.schema.split(", PRIMARY")[0].split(", "))
    size = path.stat().st_size
    source = LoadSource(
        file=SourceFile(str(path), size, False),
        fields=SMALL.columns,
        mapping=tuple((name, name) for name in SMALL.columns),
    )
    job = LoadJob(
        table=TableSchema(
            keyspace=KEYSPACE,
            table=SMALL.name,
            columns=tuple(ColumnSchema(name=n, cql_type=kind) for n, kind in definitions),
            partition_key=("id",),
            clustering_key=(),
        ),
        cluster_name="",
        sources=(source,),
        dialect=CsvDialect(),
        text=TextFormat(),
        base_us=1_700_000_000_000_000,
        unit_bytes=size,
    )
    encoder = RowEncoder(job, source, ())
    with path.open("rb") as file:
        start = Position(len(file.readline()), 0, 2)
    for block in read_records(source, job, start, TO_THE_END, job.block_bytes):
        for part in encoder.parts(block):
            if part.rejects:
                raise RuntimeError(f"{path} has a record that cannot be converted")
            for rows in part.rows:
                # The writer's work before it sends.
                murmur3_tokens(rows.keys)
                execute_frames(rows.joined(), b"0123456789abcdef", ConsistencyLevel.LOCAL_QUORUM, 5)


def time_way(way: str, count: int, path: Path) -> float:
    """Return the seconds of `count` times the work at the same time, without any start.

    Waits for a core do not count: other programs cause most of them.
    """
    if way == "processes":  # pyarrow's threads would not survive a fork: nothing is encoded before
        return _in_processes(count, path)
    encode(path)  # compiled code is loaded, and the file is in the page cache
    if way == "threads":
        with ThreadPoolExecutor(count) as pool:
            return max(pool.map(_timed, [path] * count))
    if way == "greenlets":  # they take turns, because the work never waits
        from gevent.pool import Pool

        waited_s, started = _waited_s(), time.perf_counter()
        Pool(count).map(encode, [path] * count)
        return time.perf_counter() - started - (_waited_s() - waited_s)
    return _timed(path)


def _timed(path: Path) -> float:
    """Encode in this thread; return the seconds without waits for a core."""
    waited_s, started = _waited_s(), time.perf_counter()
    encode(path)
    return time.perf_counter() - started - (_waited_s() - waited_s)


def _waited_s() -> float:
    """Return how long this thread has been ready to run, and waited for a core."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return int(path.read_text().split()[1]) / 1e9


def _in_processes(count: int, path: Path) -> float:
    """Fork, as the prefork pool does."""
    context = multiprocessing.get_context("fork")
    ready, took = context.Barrier(count), context.SimpleQueue()
    children = [context.Process(target=_child, args=(path, ready, took)) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        if child.exitcode:
            raise RuntimeError(f"a process ended {child.exitcode}")
    return float(max(took.get() for _ in children))


def _child(path: Path, ready: Barrier, took: SimpleQueue[float]) -> None:
    encode(path)
    ready.wait(60)
    took.put(_timed(path))


def run(rows: int, rounds: int) -> None:
    """Run both parts and print their tables."""
    path = data_file(cache_dir_default() / "bench", SMALL, rows=rows)
    rates = encoding_rates(path, rows, rounds)
    title = f"Encoding {rows:,} small rows for each unit, median of {rounds}"
    print(f"\n{title}\n{machine()}")
    base = rates["alone", 1]
    table: list[list[str | float]] = []
    for (way, count), rate in rates.items():
        print(f"  {way:<10} {count} {rate:>12,.0f} rows/s  {rate / base:>5.2f}")
        table.append([_words(way, count), count, round(rate), f"{rate / base:.2f}"])
    save_table(
        "pools",
        title,
        ["units run in", "units at a time", "rows/s on free cores", "times one unit"],
        table,
    )
    print("\nclaims")
    for way in ("threads", "greenlets"):
        share = rates[way, 4] / rates["processes", 4]
        print(claim(f"4 {way}, of as many processes", share, at_most=0.7))
    run_loads(rows, rounds)


def encoding_rates(path: Path, rows: int, rounds: int) -> dict[tuple[str, int], float]:
    """Return rows a second of each way, in interleaved rounds; each runs in a new process."""
    took: dict[tuple[str, int], list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, count in WAYS:
            command = [sys.executable, "-m", "bench.pools", "--encode", way, str(count), str(path)]
            took[way, count].append(json.loads(run_command(command, os.environ).out)["work_s"])
    return {way: way[1] * rows / statistics.median(of_one) for way, of_one in took.items()}


def _words(way: str, count: int) -> str:
    return {"alone": "one process (`solo`)", "processes": "processes (`prefork`)"}.get(way, way)


def run_loads(rows: int, rounds: int) -> None:
    """Load the file by a worker of each pool, print the table and save it."""
    with stage() as running, ExitStack() as stack:
        site = make_site(running, SMALL, rows, 0)
        systems = []
        for number, (pool, count) in enumerate(POOLS, 1):
            apart = running.apart(f"{pool}-{count}", number)
            pid = stack.enter_context(apart.worker(count, pool=pool))
            here = replace(site, stage=apart, worker_pid=pid)
            systems.append(ours(here, name=f"ringhaul worker --pool {pool} -c {count}"))
        for system in systems:
            system.reset()
            system.run()
        runs = interleave(systems, rounds)
    lines = medians(systems, runs)
    title = f"load of {rows:,} small rows by pool, median of {rounds}"
    print(report(title, lines))
    save("pool_loads", title, lines, runs)


def main() -> None:
    if sys.argv[1:2] == ["--encode"]:
        way, count, path = sys.argv[2:5]
        print(json.dumps({"work_s": time_way(way, int(count), Path(path))}))
        return
    options = arguments("pools", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
