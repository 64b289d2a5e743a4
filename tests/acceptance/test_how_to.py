"""The commands of the how-to pages, run as they stand there, and what they leave in the tables.

Commands that need a running job, other hosts or a service are only parsed: see `NOT_RUN`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.schedule.file import read_schedule_file
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import assert_table, write_times
from tests.services import fresh_keyspace
from tests.unit.formats.test_zip import pack

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "how-to"
#: Pages whose commands another test runs, or that need hosts, services or a running job.
ELSEWHERE = {
    "tune.md",  # nothing but commands that watch
    "install.md",  # tests of the wheel
    "sstables.md",  # tests/acceptance/sstables/
    "distance.md",  # tests/acceptance/test_compression.py
    "managed-clusters.md",  # tests/acceptance/test_secure_bundle.py
    "profile.md",  # tests/acceptance/test_profile.py
    "python.md",  # tests of the client
    "orchestrators.md",
    "hosts.md",  # tests/hosts
    "monitoring.md",  # tests of pages and metrics
    "operations.md",
    "capacity.md",  # its commands are those of tune.md
    "upgrade.md",  # tests/acceptance/test_mixed_versions.py
    "redis-backup.md",  # tests/acceptance/test_restored_ledger.py
    "schedules.md",
    "transforms.md",
    "read-exports.md",  # tests/acceptance/test_other_readers.py
    "nightly-etl.md",  # its schedule is read here
}
#: Words of commands that act on a job or a service that the page does not start.
NOT_RUN = (" ld-7f3a9c", "ringhaul top", "urandom")
COLUMNS = "region, id, total, note"
ROWS = [(f"r{n % 7}", n, Decimal(n) / 4, f"note {n}") for n in range(600)]


def lines_of(page: str) -> list[str]:
    """The page's commands that can be run."""
    blocks = re.findall(r"^```console\n(.*?)^```", (FOLDER / page).read_text(), re.M | re.S)
    found = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in found if not any(word in line for word in NOT_RUN)]


@pytest.fixture
def shop(cassandra_session: Session, keyspace: str) -> str:
    """A keyspace with the pages' tables; `orders` is filled."""
    create(cassandra_session, keyspace)
    insert = cassandra_session.prepare(
        f"INSERT INTO {keyspace}.orders ({COLUMNS}) VALUES (?, ?, ?, ?) USING TIMESTAMP ?"
    )
    rows = [(*row, 1_700_000_000_000_000 + row[1]) for row in ROWS]
    execute_concurrent_with_args(cassandra_session, insert, rows)
    return keyspace


def create(session: Session, keyspace: str) -> None:
    session.execute(
        f"CREATE TABLE {keyspace}.orders "
        "(region text, id int, total decimal, note text, PRIMARY KEY (region, id))"
    )
    session.execute(f"CREATE TABLE {keyspace}.hits (page text PRIMARY KEY, n counter)")


@pytest.fixture
def new(cassandra_session: Session) -> Iterator[str]:
    """The same tables, empty: those of the "other cluster"."""
    with fresh_keyspace(cassandra_session) as name:
        create(cassandra_session, name)
        yield name


def write(path: Path, rows: list[tuple[Any, ...]], header: str = "region,id,total,note") -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def run(fleet: Ringhaul, keyspace: str, line: str, code: int = 0) -> Finished:
    done = fleet.run_script(line.replace("shop.", f"{keyspace}."))
    assert done.code == code, (line, done)
    return done


def test_move_a_table(fleet: Ringhaul, shop: str, new: str, cassandra_session: Session) -> None:
    for name in ("old.toml", "new.toml"):
        (fleet.cwd / name).write_text("")
    cassandra_session.execute(
        f"UPDATE {shop}.orders USING TIMESTAMP 1800000000000000 AND TTL 90000 SET note = 'late' "
        "WHERE region = 'r3' AND id = 3"
    )
    for line in lines_of("move-a-table.md"):
        run(fleet, new if "new.toml" in line else shop, line)
    expected = [(*row[:3], "late" if row[1] == 3 else row[3]) for row in ROWS]
    assert_table(cassandra_session, f"{new}.orders", COLUMNS, expected)
    times = {n: 1_700_000_000_000_000 + n for _, n, _, _ in ROWS}
    assert write_times(cassandra_session, f"{new}.orders", "id", "total") == times
    assert write_times(cassandra_session, f"{new}.orders", "id", "note") == times | {
        3: 1_800_000_000_000_000
    }


def test_reload(fleet: Ringhaul, shop: str, cassandra_session: Session) -> None:
    lines = lines_of("reload.md")
    values, check, delete, again, check_again, export, repaired = lines
    write(fleet.cwd / "right.csv", [(*row[:3], f"right {row[1]}") for row in ROWS])
    for line in (values, check):
        run(fleet, shop, line)
    expected = [(*row[:3], f"right {row[1]}") for row in ROWS]
    assert_table(cassandra_session, f"{shop}.orders", COLUMNS, expected)
    # A wrong file brought 50 rows of another region.
    wrong = [("wrong", n, 1, "x") for n in range(50)]
    write(fleet.cwd / "wrong.csv", wrong)
    run(fleet, shop, "ringhaul load wrong.csv -t shop.orders --timestamp now")
    for line in (delete, again, check_again):
        run(fleet, shop, line)
    assert_table(cassandra_session, f"{shop}.orders", COLUMNS, expected)
    write(fleet.cwd / "bad.csv", [("r0", 9001, "1,5", "a"), ("r0", 9002, "2.5", "b")])
    run(fleet, shop, "ringhaul load bad.csv -t shop.orders", code=1)
    run(fleet, shop, export)
    file = fleet.cwd / "rejects.csv"
    file.write_text(file.read_text().replace('"1,5"', "1.5"))
    run(fleet, shop, repaired)
    more = [("r0", 9001, Decimal("1.5"), "a"), ("r0", 9002, Decimal("2.5"), "b")]
    assert_table(cassandra_session, f"{shop}.orders", COLUMNS, [*expected, *more])


def test_delete_keys(fleet: Ringhaul, shop: str, cassandra_session: Session) -> None:
    backup, delete, left, listing = lines_of("delete-keys.md")
    gone = [row for row in ROWS if row[1] % 5 == 0]
    write(fleet.cwd / "gone.csv", [row[:2] for row in gone], "region,id")
    run(fleet, shop, backup)
    run(fleet, shop, delete)
    assert_table(cassandra_session, f"{shop}.orders", COLUMNS, [r for r in ROWS if r not in gone])
    run(fleet, shop, left)
    assert len((fleet.cwd / "left.csv").read_text().splitlines()) == 1
    run(fleet, shop, "ringhaul load backup.csv -t shop.orders --timestamp now")
    assert_table(cassandra_session, f"{shop}.orders", COLUMNS, ROWS)
    run(fleet, shop, listing)
    small = [(row[0], str(row[1])) for row in ROWS if row[2] < 1]
    found = list(csv.reader((fleet.cwd / "gone.csv").read_text().splitlines()))
    assert sorted(map(tuple, found[1:])) == sorted(small)


def test_counters(fleet: Ringhaul, shop: str, new: str, cassandra_session: Session) -> None:
    add, _, read, unload, move = lines_of("counters.md")
    assert all("--consistency ALL" in line for line in (read, unload))
    hits = [(n, f"/{n}") for n in range(1, 101)]
    write(fleet.cwd / "hits.csv", hits, "n,page")
    (fleet.cwd / "new.toml").write_text("")
    run(fleet, shop, add)
    run(fleet, shop, read)
    run(fleet, shop, unload)
    run(fleet, new, move)
    for keyspace in (shop, new):
        assert_table(cassandra_session, f"{keyspace}.hits", "n, page", hits)


def test_mask(embedded: Ringhaul, keyspace: str, cassandra_session: Session) -> None:
    """With the page's module and settings, in a folder of the test."""
    page = (FOLDER / "mask.md").read_text()
    (module,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (settings,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    folder = embedded.cwd
    (folder / "transforms").mkdir()
    module = module.replace("/etc/ringhaul", str(folder))
    (folder / "transforms" / "masks.py").write_text(module)
    (folder / "mask.key").write_text("0123456789abcdef0123456789abcdef")
    settings = settings.replace("/opt/ringhaul/transforms", str(folder / "transforms"))
    (folder / "ringhaul.toml").write_text(settings)
    cassandra_session.execute(
        f"CREATE TABLE {keyspace}.people (id int PRIMARY KEY, name text, email text, card text)"
    )
    people = [(n, f"n{n % 2}", f"{n}@example.org", f"400012341234{n:04}") for n in range(40)]
    insert = cassandra_session.prepare(
        f"INSERT INTO {keyspace}.people (id, name, email, card) VALUES (?, ?, ?, ?)"
    )
    execute_concurrent_with_args(cassandra_session, insert, people)
    for line in lines_of("mask.md"):
        run(embedded, keyspace, line)
    parts = (folder / "masked").glob("*.csv")
    rows = [row for part in parts for row in csv.DictReader(part.read_text().splitlines())]
    assert sorted(int(row["id"]) for row in rows) == list(range(40))
    assert all(row["card"] == "*" * 12 + f"{int(row['id']):04}" for row in rows)
    assert {len(row["email"]) for row in rows} == {32}
    assert len({row["name"] for row in rows}) == 2 and len({row["email"] for row in rows}) == 40


def test_busy_cluster(fleet: Ringhaul, shop: str, cassandra_session: Session) -> None:
    (limited,) = lines_of("busy-cluster.md")
    write(fleet.cwd / "big.csv", [(*row[:3], "again") for row in ROWS])
    run(fleet, shop, limited)
    expected = [(*row[:3], "again") for row in ROWS]
    assert_table(cassandra_session, f"{shop}.orders", COLUMNS, expected)


def test_small_files(fleet: Ringhaul, shop: str, cassandra_session: Session) -> None:
    days = fleet.cwd / "days"
    days.mkdir()
    cassandra_session.execute(f"TRUNCATE {shop}.orders")
    for day in range(30):
        write(days / f"{day}.csv", [row[:3] for row in ROWS[day::30]], "region,id,total")
    (fleet.cwd / "files.txt").write_text("".join(f"{path}\n" for path in days.iterdir()))
    expected = [row[:3] for row in ROWS]
    for line in lines_of("small-files.md"):
        run(fleet, shop, line)
        assert_table(cassandra_session, f"{shop}.orders", "region, id, total", expected)
        cassandra_session.execute(f"TRUNCATE {shop}.orders")


def test_fixed_width(fleet: Ringhaul, keyspace: str, cassandra_session: Session) -> None:
    """With the page's records and layout."""
    page = (FOLDER / "fixed-width.md").read_text()
    records, layout = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (fleet.cwd / "geo.txt").write_text(records)
    (fleet.cwd / "geo.layout").write_text(layout)
    table = f"{keyspace}.places"
    cassandra_session.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, name text, lat double)")
    rows = [(1, "New York", 40.7143), (2, "Los Angeles", 34.0522)]
    plan, by_position, by_layout, verify, lookup = lines_of("fixed-width.md")
    for line in (plan, by_position, by_layout):
        run(fleet, keyspace, line)
        if line is not plan:
            assert_table(cassandra_session, table, "id, name, lat", rows)
            cassandra_session.execute(f"TRUNCATE {table}")
    run(fleet, keyspace, by_layout)
    run(fleet, keyspace, verify)
    run(fleet, keyspace, lookup)
    found = list(csv.DictReader((fleet.cwd / "found.csv").read_text().splitlines()))
    assert [(int(row["id"]), row["name"], float(row["lat"])) for row in found] == rows


def test_zip(fleet: Ringhaul, shop: str, cassandra_session: Session) -> None:
    days = {}
    for day in (30, 31):
        write(fleet.cwd / "day.csv", [row[:3] for row in ROWS[day::40]], "region,id,total")
        days[f"2026/01-{day}.csv"] = (fleet.cwd / "day.csv").read_bytes()
    pack(fleet.cwd / "days.zip", days)
    cassandra_session.execute(f"TRUNCATE {shop}.orders")
    for line in lines_of("zip.md"):
        run(fleet, shop, line)
        expected = [row[:3] for day in (30, 31) for row in ROWS[day::40]]
        if "01-31" in line:
            expected = [row[:3] for row in ROWS[31::40]]
        assert_table(cassandra_session, f"{shop}.orders", "region, id, total", expected)
        cassandra_session.execute(f"TRUNCATE {shop}.orders")


@pytest.mark.parametrize("page", ["nightly-etl.md", "small-files.md"])
def test_schedules_are_valid(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", (FOLDER / page).read_text(), re.M | re.S)
    schedules = [block for block in blocks if "[schedule." in block]
    assert len(schedules) == 1
    (tmp_path / "schedule.toml").write_text(schedules[0])
    assert read_schedule_file(tmp_path / "schedule.toml")


def test_each_page_has_a_test() -> None:
    tested = set(re.findall(r'lines_of\("([\w-]+\.md)"\)', Path(__file__).read_text()))
    with_commands = {path.name for path in FOLDER.glob("*.md") if lines_of(path.name)}
    assert with_commands - tested - ELSEWHERE == set()
