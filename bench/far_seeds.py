"""Ways to insert rows over distance that an article compares, with the official driver.

`python -m bench.far_seeds HOST PORT PATTERN TABLE FILE ROWS` inserts the first ROWS records of FILE
(`data.PEOPLE`) and prints one JSON line. The session opens before the clock starts. Patterns with
green threads are in `green_seeds`, which replaces parts of Python before anything is imported.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from cassandra.cluster import Session
from cassandra.cqlengine import columns, connection
from cassandra.cqlengine.models import Model

from bench.driver import open_cluster

#: As in the article, for threads too.
POOL = 100
INSERT = "INSERT INTO {} (user_id, first_name, last_name) VALUES (?, ?, ?)"


class Person(NamedTuple):
    """A record."""

    user_id: UUID
    first_name: str
    last_name: str


#: Inserts one record and waits for the answer.
Insert = Callable[[Person], object]
#: Runs an insert for each record.
ForEach = Callable[[Insert, Sequence[Person]], object]


def statements(session: Session, table: str) -> Insert:
    """Return an insert by a prepared statement."""
    prepared = session.prepare(INSERT.format(table))
    return lambda person: session.execute(prepared, person)


def models(session: Session, table: str) -> Insert:
    """Return an insert by a model of the driver's object mapper."""
    connection.register_connection("bench", session=session, default=True)
    keyspace, _, name = table.partition(".")

    class User(Model):  # type: ignore[misc]
        __keyspace__ = keyspace
        __table_name__ = name
        user_id = columns.UUID(primary_key=True)
        first_name = columns.Text()
        last_name = columns.Text()

    return lambda person: User.create(**person._asdict())


def one_by_one(insert: Insert, people: Sequence[Person]) -> None:
    """Wait for each answer before the next request."""
    for person in people:
        insert(person)


def threads(insert: Insert, people: Sequence[Person]) -> None:
    """Do the same in 100 threads."""
    with ThreadPoolExecutor(POOL) as pool:
        for _ in pool.map(insert, people):
            pass


PATTERNS: dict[str, tuple[Callable[[Session, str], Insert], ForEach]] = {
    "one-by-one": (statements, one_by_one),
    "threads": (statements, threads),
    "models": (models, one_by_one),
}


def people_of(path: Path, rows: int) -> list[Person]:
    """Return the first records of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        records = itertools.islice(csv.reader(file), 1, rows + 1)
        return [Person(UUID(user_id), first, last) for user_id, first, last in records]


def run(
    session: Session,
    insert_of: Callable[[Session, str], Insert],
    for_each: ForEach,
    table: str,
    people: Sequence[Person],
) -> None:
    """Insert the records and print what it took, without the start of the program."""
    insert = insert_of(session, table)
    started, cpu_started = time.perf_counter(), time.process_time()
    for_each(insert, people)
    work_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started
    print(json.dumps({"queries": len(people), "work_s": work_s, "cpu_s": cpu_s}))


def main() -> None:
    host, port, pattern, table, path, rows = sys.argv[1:7]
    insert_of, for_each = PATTERNS[pattern]
    people = people_of(Path(path), int(rows))
    session = open_cluster(host, int(port)).connect()
    run(session, insert_of, for_each, table, people)


if __name__ == "__main__":
    main()
