"""What is done with rows that came as SSTables: pages, writes over CQL, expiry, damaged files."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from cassandra.query import SimpleStatement

from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.oracle import assert_report, read_rows
from tests.acceptance.sstables.flips import Flip
from tests.acceptance.sstables.loading import to_sstables
from tests.scale import SEED, scaled
from tests.sstable_proof import read_by_tools
from tests.sstable_tools import Node

PARTITIONS, ROWS_EACH = scaled(40, 400), 25
#: Of rows that are looked at, and of rows that expire soon.
LONG_S, SHORT_S = 3000, 3


@pytest.fixture
def table(node: Node, keyspace: str) -> str:
    node.session.execute(
        f"CREATE TABLE {keyspace}.t (id int, seq int, v text, n bigint, PRIMARY KEY (id, seq)) "
        "WITH gc_grace_seconds = 0"
    )
    return f"{keyspace}.t"


Row = tuple[int, int, str, int]


def write_input(folder: Path) -> dict[tuple[int, int], Row]:
    rows = [
        (n // ROWS_EACH, n % ROWS_EACH, f"value {n} " * 9, n * 1_000_003)
        for n in range(PARTITIONS * ROWS_EACH)
    ]
    lines = [",".join(map(str, row)) for row in rows]
    random.Random(1).shuffle(lines)
    (folder / "in.csv").write_text("id,seq,v,n\n" + "\n".join(lines) + "\n")
    return {row[:2]: row for row in rows}


def load(ringhaul: Ringhaul, table: str, rows: int, *options: object) -> None:
    done = ringhaul.run("load", "in.csv", "-t", table, "--json", *options)
    assert_report(done, rows=rows)


def found(node: Node, table: str) -> dict[tuple[int, int], Row]:
    return {row[:2]: row for row in read_rows(node.session, table, "id, seq, v, n")}


def test_rows_are_paged_changed_deleted_and_expire(
    node: Node, ringhaul: Ringhaul, table: str
) -> None:
    # Given rows that expire some time
    wanted = write_input(ringhaul.cwd)
    load(ringhaul, table, len(wanted), "--via", "streaming", "--ttl", LONG_S)

    # Then they are read by pages, in both directions
    statement = SimpleStatement(f"SELECT id, seq, v, n FROM {table}", fetch_size=7)
    assert {tuple(row[:2]): tuple(row) for row in node.session.execute(statement)} == wanted
    for order in ("ASC", "DESC"):
        query = f"SELECT seq FROM {table} WHERE id = 3 AND seq >= 5 ORDER BY seq {order}"
        pages = node.session.execute(SimpleStatement(query, fetch_size=4))
        numbers = list(range(5, ROWS_EACH))
        assert [row.seq for row in pages] == (numbers if order == "ASC" else numbers[::-1])

    # And newer writes and deletions over CQL count, of cells, rows, ranges and partitions
    session = node.session
    session.execute(f"UPDATE {table} SET v = 'new' WHERE id = 0 AND seq = 0")
    session.execute(f"DELETE v FROM {table} WHERE id = 0 AND seq = 1")
    session.execute(f"DELETE FROM {table} WHERE id = 0 AND seq = 2")
    session.execute(f"DELETE FROM {table} WHERE id = 0 AND seq >= 20")
    session.execute(f"DELETE FROM {table} WHERE id = 1")
    changed = {place: row for place, row in wanted.items() if place[0] != 1}
    changed = {p: row for p, row in changed.items() if p[0] or (p[1] < 20 and p[1] != 2)}
    changed[0, 0] = (0, 0, "new", 0)
    changed[0, 1] = (0, 1, None, changed[0, 1][3])  # type: ignore[assignment]
    assert found(node, table) == changed
    (ttl,) = session.execute(f"SELECT ttl(v) FROM {table} WHERE id = 5 AND seq = 5").one()
    assert LONG_S - 300 < ttl <= LONG_S

    # And once the time of rows is over only what was written over CQL is left, on the disk, too
    load(ringhaul, table, len(wanted), "--via", "streaming", "--ttl", SHORT_S)
    session.execute(f"UPDATE {table} SET v = 'new' WHERE id = 0 AND seq = 0")
    left = {(0, 0): (0, 0, "new", None)}
    wait_until(lambda: found(node, table) == left, "the rows to expire")
    time.sleep(1)
    node.nodetool("flush", *table.split("."))
    node.nodetool("compact", *table.split("."))
    assert found(node, table) == left
    assert sum(path.stat().st_size for path in node.sstables(table)) < 1000


def test_tools_read_what_was_streamed(
    node: Node, ringhaul: Ringhaul, table: str, tmp_path: Path
) -> None:
    wanted = write_input(ringhaul.cwd)
    load(ringhaul, table, len(wanted), "--via", "streaming", "--unit-size", "1 GiB")
    (data,) = node.sstables(table)
    copy = tmp_path / "copy"
    shutil.copytree(data.parent, copy, ignore=shutil.ignore_patterns("backups", "snapshots"))
    read_by_tools(node, copy, len(wanted))
    node.nodetool("scrub", *table.split("."))
    assert found(node, table) == wanted
    node.nodetool("verify", "-e", "-f", *table.split("."))


#: Component -> how many of its bits are flipped, one at a time.
FLIPS = {
    "Data.db": scaled(2, 30),
    "Index.db": scaled(2, 30),
    "Summary.db": scaled(1, 20),
    "Filter.db": scaled(1, 20),
    "Statistics.db": scaled(2, 30),
    "CompressionInfo.db": scaled(1, 20),
    "Digest.crc32": scaled(1, 8),
    "TOC.txt": 1,
}


def test_a_flipped_bit_is_refused_or_found(
    node: Node, ringhaul: Ringhaul, table: str, tmp_path: Path
) -> None:
    # Given SSTables with a flipped bit each, somewhere in one of their files
    wanted = write_input(ringhaul.cwd)
    one_file = ("--unit-size", "1 GiB")
    folder = to_sstables(ringhaul, "in.csv", table, *one_file, rows=len(wanted))
    dice = random.Random(SEED)
    flips = [
        Flip.of(folder, component, dice) for component, count in FLIPS.items() for _ in range(count)
    ]
    copies = {flip: tmp_path / f"damaged-{number}" for number, flip in enumerate(flips)}
    for flip, copy in copies.items():
        flip.copied(folder, copy)

    # When they are imported, then most are refused
    node.nodetool("import", "-e", *table.split("."), *map(str, copies.values()))
    taken = [flip for flip, copy in copies.items() if not list(copy.glob("*-Data.db"))]
    names = {flip.component for flip in taken}
    assert names.isdisjoint({"Data.db", "Statistics.db", "CompressionInfo.db"}), names

    # And of those that are taken, each has all rows, or a comparison with the source says that not
    for flip in taken:
        node.session.execute(f"TRUNCATE {table}")
        again = tmp_path / "again"
        shutil.rmtree(again, ignore_errors=True)
        flip.copied(folder, again)
        node.nodetool("import", "-e", *table.split("."), str(again))
        try:
            is_same = found(node, table) == wanted
        except Exception:  # the node cannot read the file
            is_same = False
        verified = ringhaul.run("verify", "in.csv", "-t", table)
        assert is_same or verified.code != 0, flip
