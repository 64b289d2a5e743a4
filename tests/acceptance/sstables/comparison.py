"""Compare SSTables of ours with those of a node, and a table that got ours with one over CQL."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.any_table import raw_session, stored_rows
from tests.acceptance.command import wait_until
from tests.acceptance.oracle import read_rows
from tests.sstable_reader import data_of
from tests.sstable_tools import Node

#: The write time of rows that are compared.
US = 1_700_000_000_000_000


def contents(node: Node, table: str) -> list[dict[str, bytes | None]]:
    """Return the rows as stored, in the node's order."""
    with raw_session(node.session) as raw:
        return stored_rows(raw, table)


def assert_equal(node: Node, ours: str, by_cql: str, times: str) -> None:
    """Compare the values of two tables, and `times`: keys and write times of columns."""
    assert contents(node, ours) == contents(node, by_cql)
    assert read_rows(node.session, ours, times) == read_rows(node.session, by_cql, times)


def assert_equal_after_compaction(node: Node, ours: str, by_cql: str, times: str) -> None:
    """Compare values and write times of two tables, before and after a compaction of the first."""
    assert_equal(node, ours, by_cql, times)
    node.nodetool("verify", "-e", "-f", *ours.split("."))
    node.nodetool("compact", *ours.split("."))
    assert_equal(node, ours, by_cql, times)


def compacted(node: Node, table: str) -> Path:
    """Compact the files of a table; return the only Data.db that is left."""
    node.nodetool("compact", *table.split("."))
    wait_until(lambda: len(node.sstables(table)) == 1, "files that the compaction replaced")
    (data,) = node.sstables(table)
    return data


def flushed_and_compacted(node: Node, table: str) -> Path:
    """Do the same to a table that was filled over CQL."""
    node.nodetool("flush", *table.split("."))
    return compacted(node, table)


def assert_same_files(found: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    """Compare data, index and summary of two SSTables, byte by byte."""
    assert data_of(found) == data_of(wanted)
    assert found["Index.db"] == wanted["Index.db"]
    assert found["Summary.db"] == wanted["Summary.db"]
