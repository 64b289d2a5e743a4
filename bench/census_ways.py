"""The ways of an article to load census records, with the official driver.

`python -m bench.census_ways HOST PORT WAY WORKERS HOW GEO WIDE GEO_RECORDS WIDE_RECORDS` inserts
the first records of two zip archives (`bench.census`), and prints one JSON line with the article's
three figures. As in the article, another process reads the archives and parses lines into records,
which come through a queue; then workers insert geographic records, and afterwards wide ones: two
SELECTs for each, one of which returns 200 rows of the dictionary, and 200 INSERTs.

WAY: `threads` or `asyncio`; `gevent` is in `census_green`, which replaces parts of Python first.
HOW: `rows`, one by one, or `helper`: the driver's `execute_concurrent_with_args`, which asyncio has
as `gather`.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import queue
import sys
import threading
import time
import zipfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from cassandra import OperationTimedOut
from cassandra.cluster import NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import tuple_factory

from bench.census import COUNTS, DICTIONARY, GEO, GEO_FIELDS, GEO_TYPES, WIDE_HEAD
from bench.driver import open_cluster
from bench.stage import KEYSPACE

#: Many more requests at once than the server works on take longer than the driver's 10 s.
TIMEOUT_S = 120.0
#: A request is sent again after a pause, or a busy machine would end the run.
TRIES, AGAIN_S = 5, 0.5
#: Pause of a worker that may not block when the queue is empty.
POLL_S = 0.001
_READERS: dict[str, Callable[[str], object]] = {"int": int, "bigint": int, "double": float}
#: A record, and the values of a row.
Row = tuple[Any, ...]


def parse_geo(line: str) -> Row:
    """Return the values of a geographic record, in the order of the table's columns."""
    values = []
    for name in GEO.columns:
        first, last = GEO_FIELDS[name]
        values.append(_READERS.get(GEO_TYPES.get(name, ""), str)(line[first - 1 : last].strip()))
    return tuple(values)


def parse_wide(line: str) -> Row:
    """Return the fields of a wide record as text."""
    return tuple(line.rstrip("\n").split(","))


PARSERS = {"geo": parse_geo, "wide": parse_wide}


def feed(records: Any, filled: Any, path: str, kind: str) -> None:
    """Read all records of an archive into the queue, as the other process."""
    parse = PARSERS[kind]
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as member:
        for line in member:
            records.put(parse(line.decode()))
    filled.set()


class Records:
    """The first records of a queue; then None for each worker that wants more."""

    def __init__(self, records: Any, count: int) -> None:
        self._records, self._left = records, count
        self._lock = threading.Lock()

    def get(self) -> Row | None:
        """Return the next record, once there is one."""
        with self._lock:
            if not self._left:
                return None
            self._left -= 1
        record: Row = self._records.get()
        return record

    def get_nowait(self) -> Row | None:
        """Return the next record. Raise `queue.Empty` if there is none yet."""
        if not self._left:
            return None
        record: Row = self._records.get_nowait()
        self._left -= 1
        return record


class Part(NamedTuple):
    """Rows, and the time and the CPU that they took."""

    rows: int
    work_s: float
    cpu_s: float


class Meter:
    """Counts inserted rows before and after the queue was filled."""

    def __init__(self, filled: Any) -> None:
        self._filled = filled
        self._lock = threading.Lock()
        self._rows = [0, 0]
        self._marks = [_now()]

    def add(self, rows: int) -> None:
        """Count rows that are in the table now."""
        with self._lock:
            if len(self._marks) == 1 and self._filled.is_set():
                self._marks.append(_now())
            self._rows[len(self._marks) - 1] += rows

    def parts(self) -> list[Part]:
        """Return what was done while the queue was filled, and after that."""
        end = _now()
        begin, middle = self._marks[0], self._marks[-1] if len(self._marks) == 2 else end
        return [
            Part(rows, then[0] - since[0], then[1] - since[1])
            for rows, since, then in zip(self._rows, (begin, middle), (middle, end), strict=True)
        ]


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


class Statements:
    """A session, and what is executed for a record of each kind."""

    def __init__(self, session: Session) -> None:
        self.session = session
        session.default_timeout = TIMEOUT_S
        session.row_factory = tuple_factory
        marks = ", ".join("?" * len(GEO.columns))
        self.insert_geo = session.prepare(
            f"INSERT INTO {KEYSPACE}.{GEO.name} ({', '.join(GEO.columns)}) VALUES ({marks})"
        )
        self.select_geo = session.prepare(
            f"SELECT name FROM {KEYSPACE}.{GEO.name} WHERE logrecno = ?"
        )
        self.select_dictionary = session.prepare(
            f"SELECT item, matrix FROM {KEYSPACE}.{DICTIONARY.name} WHERE segment = ?"
        )
        self.insert_count = session.prepare(
            f"INSERT INTO {KEYSPACE}.{COUNTS.name} (logrecno, item, matrix, value) "
            "VALUES (?, ?, ?, ?)"
        )


def rows_of(record: Row, keys: Sequence[Row]) -> list[Row]:
    """Return the rows that a wide record becomes; `keys`: item and matrix of each of its counts."""
    number = int(record[WIDE_HEAD.index("logrecno")])
    counts = record[len(WIDE_HEAD) :]
    return [
        (number, item, matrix, int(count))
        for (item, matrix), count in zip(keys, counts, strict=True)
    ]


def blocking_work(
    on: Statements, kind: str, how: str, done: Callable[[int], None]
) -> Callable[[Row], None]:
    """Return what inserts a record and waits for it. `done` gets the number of rows that are in the
    table now."""

    def ask(statement: Any, values: Row) -> Any:
        # The driver may close a connection whose heartbeat is late, because others kept the one
        # thread of green threads busy.
        for _ in range(TRIES - 1):
            try:
                return on.session.execute(statement, values)
            except (OperationTimedOut, NoHostAvailable):
                time.sleep(AGAIN_S)
        return on.session.execute(statement, values)

    def geo(record: Row) -> None:
        ask(on.insert_geo, record)
        done(1)

    def wide(record: Row) -> None:
        ask(on.select_geo, (int(record[WIDE_HEAD.index("logrecno")]),))
        rows = rows_of(record, ask(on.select_dictionary, (record[3],)).all())
        if how == "helper":
            execute_concurrent_with_args(on.session, on.insert_count, rows)
            done(len(rows))
        else:
            for row in rows:
                ask(on.insert_count, row)
                done(1)

    return geo if kind == "geo" else wide


#: Starts so many workers, which take records and do the work, and waits for all.
Crew = Callable[[int, Records, Callable[[Row], None]], None]


def in_threads(workers: int, records: Records, work: Callable[[Row], None]) -> None:
    """Work in threads."""
    errors: list[BaseException] = []

    def loop() -> None:
        try:
            while (record := records.get()) is not None:
                work(record)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


async def _answer(on: Statements, statement: Any, values: Row) -> list[Row]:
    """Execute a statement, and await its rows."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Row]] = loop.create_future()

    def take(rows: list[Row] | None) -> None:
        loop.call_soon_threadsafe(answer.set_result, rows or [])

    def fail(error: Exception) -> None:
        loop.call_soon_threadsafe(answer.set_exception, error)

    on.session.execute_async(statement, values).add_callbacks(take, fail)
    return await answer


def awaiting_work(
    on: Statements, kind: str, how: str, done: Callable[[int], None]
) -> Callable[[Row], Awaitable[None]]:
    """Return what `blocking_work` returns, as a coroutine."""

    async def insert(row: Row) -> None:
        await _answer(on, on.insert_count, row)
        done(1)

    async def geo(record: Row) -> None:
        await _answer(on, on.insert_geo, record)
        done(1)

    async def wide(record: Row) -> None:
        await _answer(on, on.select_geo, (int(record[WIDE_HEAD.index("logrecno")]),))
        rows = rows_of(record, await _answer(on, on.select_dictionary, (record[3],)))
        if how == "helper":
            await asyncio.gather(*(insert(row) for row in rows))
        else:
            for row in rows:
                await insert(row)

    return geo if kind == "geo" else wide


async def in_coroutines(
    workers: int, records: Records, work: Callable[[Row], Awaitable[None]]
) -> None:
    """Work in coroutines of one thread."""

    async def loop() -> None:
        while True:
            try:
                record = records.get_nowait()
            except queue.Empty:
                await asyncio.sleep(POLL_S)
                continue
            if record is None:
                return
            await work(record)

    await asyncio.gather(*(loop() for _ in range(workers)))


def measure(crew: Callable[[Records, Meter], None], path: str, kind: str, count: int) -> list[Part]:
    """Insert the first records of an archive, and return what was done before and after the queue
    had all of them."""
    context = multiprocessing.get_context("spawn")
    records, filled = context.Queue(), context.Event()
    reader = context.Process(target=feed, args=(records, filled, path, kind))
    reader.start()
    try:
        while records.empty():  # the clock starts when the reader has
            time.sleep(POLL_S)
        meter = Meter(filled)
        crew(Records(records, count), meter)
        return meter.parts()
    finally:
        reader.kill()  # it waits until someone takes the rest
        reader.join()


def run(on: Statements, way: str, crew: Crew | None, arguments: Sequence[str]) -> None:
    """Load both archives and print the figures. `crew`: starts workers; None: coroutines."""
    workers, how, geo, wide = int(arguments[0]), *arguments[1:4]
    parts: list[Part] = []
    for kind, path, count in (("geo", geo, arguments[4]), ("wide", wide, arguments[5])):

        def work_all(records: Records, meter: Meter, kind: str = kind) -> None:
            if crew is None:
                work = awaiting_work(on, kind, how, meter.add)
                asyncio.run(in_coroutines(workers, records, work))
            else:
                crew(workers, records, blocking_work(on, kind, how, meter.add))

        found = measure(work_all, path, kind, int(count))
        if kind == "geo":
            found = [Part(*map(sum, zip(*found, strict=True)))]
        parts += found
    names = ("geo", "filling", "filled")
    print(json.dumps({"way": way} | {n: p._asdict() for n, p in zip(names, parts, strict=True)}))


def main() -> None:
    host, port, way, *arguments = sys.argv[1:]
    session = open_cluster(host, int(port)).connect()
    run(Statements(session), way, {"threads": in_threads, "asyncio": None}[way], arguments)


if __name__ == "__main__":
    main()
