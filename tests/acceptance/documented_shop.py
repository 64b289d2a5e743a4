"""The tables and the input files of the examples of commands that read."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.oracle import create_table

ROWS = 2_000
#: The regions of the orders; an order's total is its number.
REGIONS = ("north", "south")
PEOPLE = 40
NOTES = range(101, 113)
#: The times in old.txt, which has other formats: 12:00 in Berlin, seconds since 1970.
READINGS = [("north's", datetime(2024, 5, 31, 10)), ("hall\0seven", datetime(2024, 6, 1))]


def age(n: int) -> int | None:
    """Return a person's age; three persons have none."""
    return None if n % 16 == 5 else 18 + n


def note(n: int) -> str | None:
    """Return a note that needs quotes; every fourth row has none."""
    return None if n % 4 == 0 else f"it's; {n}"


def create_shop(session: Session, keyspace: str) -> None:
    """Create and fill the tables of the examples."""
    orders = create_table(
        session,
        keyspace,
        "id int PRIMARY KEY, region text, total bigint, placed timestamp",
        "orders",
    )
    insert = session.prepare(
        f"INSERT INTO {orders} (id, region, total, placed) VALUES (?, ?, ?, '2024-06-01')"
    )
    rows = [(n, REGIONS[n % 2], n) for n in range(ROWS)]
    execute_concurrent_with_args(session, insert, rows, concurrency=100)
    events = create_table(
        session,
        keyspace,
        "user text, day date, at int, total bigint, PRIMARY KEY (user, day, at)",
        "events",
    )
    insert = session.prepare(f"INSERT INTO {events} (user, day, at, total) VALUES (?, ?, ?, 1)")
    rows = [(f"u{u}", f"2024-03-{d:02}", at) for u in range(9) for d in (1, 2) for at in range(u)]
    execute_concurrent_with_args(session, insert, rows, concurrency=100)
    create_table(session, keyspace, "page text PRIMARY KEY, n counter", "hits")
    people = create_table(session, keyspace, "id int PRIMARY KEY, age int", "people")
    for n in range(PEOPLE):
        session.execute(f"INSERT INTO {people} (id, age) VALUES ({n}, {age(n) or 'null'})")
    notes = create_table(session, keyspace, "id int PRIMARY KEY, note text", "notes")
    for n in NOTES:
        session.execute(f"INSERT INTO {notes} (id, note) VALUES (%s, %s)", (n, note(n)))
    readings = create_table(
        session, keyspace, "sensor text, at timestamp, PRIMARY KEY (sensor, at)", "readings"
    )
    for reading in READINGS:
        session.execute(f"INSERT INTO {readings} (sensor, at) VALUES (%s, %s)", reading)


def write_inputs(folder: Path) -> None:
    """Write the files that the examples read."""
    (folder / "ids.csv").write_text("id\n7\n8\n")
    (folder / "floats.csv").write_text('id\n"7,0"\n"8,4"\n')
    (folder / "numbers.txt").write_text("7,seven\n8,eight\n")
    (folder / "pairs.jsonl").write_text('{"user": "u7", "day": "2024-03-01"}\n')
    (folder / "hits.csv").write_text("n,page\n3,/\n4,/about\n")
    profile = '[format.numbers]\nheader = false\ncolumns = "id,word"\nskip-columns = "word"\n'
    (folder / "ringhaul.toml").write_text(profile)
    (folder / "report.csv").write_text("sep=;\nWanted in May;\nid;of\n7;x\n8;y\n")
    (folder / "fixed.txt").write_text("   7\n   8\n")
    (folder / "fixed.layout").write_text("name,first,last\nid,1,4\n")
    (folder / "days.txt").write_text("2024-03-02\n")
    (folder / "export.txt").write_text("id\tnote\n7\tcafé\n8\tNULL\n", "latin-1")
    (folder / "placed.csv").write_text("id,placed\n7,2024-07-01T00:00:00Z\n8,\n")
    placed = "# of the old system\nid,placed\n7,'31.05.2024 12:00'\n8,1717200000\n"
    (folder / "placed.txt").write_text(placed)
    notes = 'n,s,t\n900,x,skipped\n1.001 ,x, "a, b" ,more\n1.002,x\n1.003,x,beyond\n'
    (folder / "old-notes.txt").write_text(notes)
    old = "# of the old system\nsensor,at\n'north\\'s','31.05.2024 12:00'\nhall\0seven,1717200000\n"
    (folder / "old.txt").write_text(old)
