"""Ways to load a file with SSTables, and over CQL to compare with."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report
from tests.acceptance.sstables.comparison import US, flushed_and_compacted
from tests.sstable_reader import data_of, read_components
from tests.sstable_tools import Node


def to_sstables(
    ringhaul: Ringhaul, source: str, table: str, *options: object, rows: int, rejected: int = 0
) -> Path:
    """Load to SSTables; return the folder that has them, and nothing else."""
    done = ringhaul.run("load", source, "-t", table, "--to-sstables", "out", "--json", *options)
    summary = assert_report(done, rows=rows, rejected=rejected)
    keyspace, _, name = table.partition(".")
    folder = ringhaul.cwd / "out" / keyspace / name
    assert len(list(folder.glob("*-Data.db"))) == summary["sstables"] > 0
    assert [path.name for path in (ringhaul.cwd / "out").iterdir()] == [keyspace]
    return folder


def bring_in(node: Node, table: str, folder: Path) -> None:
    """Import SSTables; the node checks their digests and takes them away."""
    said = node.nodetool("import", *table.split("."), str(folder))
    assert not list(folder.glob("*-Data.db")), said


def load_as(
    way: str,
    node: Node,
    ringhaul: Ringhaul,
    source: str,
    table: str,
    *options: object,
    rows: int,
    rejected: int = 0,
) -> None:
    """Load with SSTables: written to a folder and imported, or streamed."""
    if way == "streaming":
        options = (*options, "--via", "streaming", "--json")
        done = ringhaul.run("load", source, "-t", table, *options)
        assert assert_report(done, rows=rows, rejected=rejected)["sstables"] > 0
    else:
        folder = to_sstables(ringhaul, source, table, *options, rows=rows, rejected=rejected)
        bring_in(node, table, folder)


def over_cql(ringhaul: Ringhaul, source: str, table: str, *options: object, rows: int) -> None:
    """Load over CQL, with the write time of the SSTables."""
    options = ("--timestamp", US, *options, "--json")
    assert_report(ringhaul.run("load", source, "-t", table, *options), rows=rows)


def filled_in_one_second(
    node: Node, ringhaul: Ringhaul, source: str, table: str, columns: str, ours: Path, *, rows: int
) -> Path:
    """Make a table and fill it over CQL; return the Data.db of its compaction.

    The node stores the second of each deletion, and a collection begins with one. If a load crosses
    into the next second, its data is not that of `ours`: then it is repeated. On a busy machine a
    load may take most of a second.
    """
    for _ in range(8):
        node.session.execute(f"DROP TABLE IF EXISTS {table}")
        node.session.execute(f"CREATE TABLE {table} ({columns})")
        over_cql(ringhaul, source, table, rows=rows)
        theirs = flushed_and_compacted(node, table)
        if data_of(read_components(theirs)) == data_of(read_components(ours)):
            break
    return theirs
