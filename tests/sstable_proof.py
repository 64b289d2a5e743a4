"""The proof that SSTables of any table are those that a node would have: for generated schemas.

Tables are proved together: what a tool takes to start is shared among them.

1. Rows are written by the driver, without any code under test, and unloaded.
2. The unload is loaded over CQL, streamed, and written to files that are imported, with the same
   write times; some with TTLs.
3. Values, write times and TTLs are equal: as they are, after `nodetool verify -e`, after
   compaction, and after scrub. Scrub loses partitions of some tables with static columns, no
   matter who wrote the files: so it runs last, over both.
4. What a major compaction makes of the rows over CQL are the bytes of our Data.db, Index.db and
   Summary.db; Statistics.db is equal field by field, with stated exceptions. Left out
   are tables with collections that are not frozen, which store the second of the write, and those
   with a column that no row has: a node lists it in the header, and we do not.
5. `sstabledump` and `sstablemetadata` read our files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cassandra.cluster import Session
from cassandra.query import BoundStatement
from hypothesis import strategies as st

from ringhaul.cql.empties import EMPTIABLE
from ringhaul.cql.types import CqlType
from tests.acceptance.any_table import (
    AnyTable,
    Column,
    create_tables,
    quoted,
    stored_rows,
    tables,
    write_rows,
)
from tests.acceptance.command import Ringhaul, wait_until
from tests.scale import scaled
from tests.sstable_figures import assert_same_statistics
from tests.sstable_reader import data_of, read_components
from tests.sstable_tools import Node

US = 1_700_000_000_000_000
TTL_S = 9000
#: Commands at once.
AT_ONCE = 3
BY_CQL, STREAMED, IMPORTED = "cql", "streamed", "imported"


def is_multi_cell(column: Column) -> bool:
    """Whether a column has a cell for each element or field."""
    return not column.frozen and column.kind.name in ("list", "set", "map", "udt")


def written_tables(*, vectors: bool = True) -> st.SearchStrategy[AnyTable]:
    """Tables that can be written to SSTables. `vectors`: whether the node knows vectors."""

    def is_written(table: AnyTable) -> bool:
        kinds = [column.kind for column in table.columns]
        return (vectors or not any(map(_has_vector, kinds))) and not any(
            is_multi_cell(column)
            and column.kind.name in ("set", "map")
            and _has_decimal(column.kind.of[0])
            for column in table.others
        )

    return (tables() | tables(EMPTIABLE)).filter(is_written)


def _has_decimal(kind: CqlType) -> bool:
    return kind.name == "decimal" or any(map(_has_decimal, kind.of))


def _has_vector(kind: CqlType) -> bool:
    return kind.name == "vector" or any(map(_has_vector, kind.of))


@dataclass(frozen=True)
class _Case:
    """A table, and what was loaded."""

    number: int
    table: AnyTable
    rows: int
    ours: Path  #: a copy of our files
    is_complete: bool  #: whether each column has a value in some row

    def name(self, way: str) -> str:
        return f"{way}{self.number}"

    @property
    def is_exact(self) -> bool:
        """Whether our bytes are determined: see the module."""
        return self.is_complete and not self.has_cells

    @property
    def has_cells(self) -> bool:
        """Whether a column has a cell for each element or field."""
        return any(map(is_multi_cell, self.table.others))


class Proof:
    """Proves tables in one keyspace."""

    def __init__(
        self, node: Node, raw: Session, ringhaul: Ringhaul, keyspace: str, folder: Path
    ) -> None:
        self._node, self._raw, self._ringhaul = node, raw, ringhaul
        self._keyspace, self._folder = keyspace, folder

    def prove(self, given: Sequence[AnyTable]) -> None:
        """Prove some tables; the error of one names it."""
        for number, table in enumerate(given):
            names = [f"{way}{number}" for way in ("source", BY_CQL, STREAMED, IMPORTED)]
            create_tables(self._node.session, self._keyspace, table, names)
        for _ in range(2):  # from the second command on they share a process that starts them
            self._ringhaul.run("--version")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            loading = [pool.submit(self._load, *one) for one in enumerate(given)]
            cases = []
            for table, future in zip(given, loading, strict=True):
                with _naming(table):
                    cases.append(future.result())
        for case in cases:
            with _naming(case.table):
                self._import(case)
        self._compare(cases, "as loaded")
        ours = [case.name(way) for case in cases for way in (STREAMED, IMPORTED)]
        self._node.nodetool("flush", self._keyspace)
        self._node.nodetool("verify", *self._node.verify_flags, self._keyspace, *ours)
        self._compare(cases, "after verify")
        compacted = [case.name(way) for case in cases for way in (BY_CQL, IMPORTED)]
        self._node.nodetool("compact", self._keyspace, *compacted)
        self._compare(cases, "after compaction")
        for case in cases:
            with _naming(case.table):
                if case.is_exact:
                    self._compare_files(case)
        self._read_by_tools(cases)
        # A scrub of 5.0 drops some partitions that the node itself wrote: then it must drop ours.
        scrubbed = [case.name(way) for case in cases for way in (BY_CQL, STREAMED)]
        self._node.nodetool("scrub", self._keyspace, *scrubbed)
        self._compare(cases, "after scrub", ways=(STREAMED,))

    def _load(self, number: int, table: AnyTable) -> _Case:
        source, unloaded = (
            f"{self._keyspace}.source{number}",
            self._folder / f"unloaded{number}.jsonl",
        )
        write_rows(self._node.session, source, table)
        stored = stored_rows(self._raw, source)
        rows = len(stored)
        assert rows
        used = {name for row in stored for name, value in row.items() if value is not None}
        self._run(rows, "unload", "-t", source, "-o", unloaded, "--format", "jsonl")
        is_complete = used == {column.name for column in table.columns}
        case = _Case(number, table, rows, self._folder / f"ours{number}", is_complete)
        options: tuple[object, ...] = ("--timestamp", US, "--allow-nul")
        if case.has_cells:
            options = (*options, "--ttl", TTL_S)
        out = self._folder / f"out{number}"
        for way, more in (
            (BY_CQL, ("--exact-timestamps",) if _has_lists(table) else ()),
            (STREAMED, ("--via", "streaming")),
            (IMPORTED, ("--to-sstables", out)),
        ):
            name = f"{self._keyspace}.{case.name(way)}"
            self._run(rows, "load", unloaded, "-t", name, *options, *more)
        shutil.copytree(self._made(case), case.ours)
        return case

    def _run(self, rows: int, *arguments: object) -> None:
        done = self._ringhaul.run(*arguments, "--json")
        assert done.code == 0, done
        assert done.summary["rows"] == rows, done

    def _made(self, case: _Case) -> Path:
        return self._folder / f"out{case.number}" / self._keyspace / case.name(IMPORTED)

    def _import(self, case: _Case) -> None:
        made = self._made(case)
        said = self._node.nodetool("import", self._keyspace, case.name(IMPORTED), str(made))
        assert not list(made.glob("*-Data.db")), said

    def _compare(
        self, cases: Sequence[_Case], when: str, ways: Sequence[str] = (STREAMED, IMPORTED)
    ) -> None:
        for case in cases:
            with _naming(case.table):
                for way in ways:
                    for read in (self._values, self._times, self._backwards):
                        wanted, found = read(case, BY_CQL), read(case, way)
                        assert found == wanted, f"{way}, {when}: {read.__name__}"

    def _values(self, case: _Case, way: str) -> object:
        return stored_rows(self._raw, f"{self._keyspace}.{case.name(way)}")

    def _backwards(self, case: _Case, way: str) -> object:
        """Return the rows of each partition in descending order, a page at a time."""
        table = case.table
        if not table.clustering:
            return []
        key = " AND ".join(f"{quoted(column.name)} = ?" for column in table.partition)
        order = ", ".join(
            f"{quoted(column.name)} {'ASC' if order == 'DESC' else 'DESC'}"
            for column, order in table.clustering
        )
        name = f"{self._keyspace}.{case.name(way)}"
        statement = self._raw.prepare(f"SELECT * FROM {name} WHERE {key} ORDER BY {order}")
        found = []
        for row in stored_rows(self._raw, name):
            bound = BoundStatement(statement)
            bound.fetch_size = 2
            bound.values = [row[column.name] for column in table.partition]
            found.append(self._raw.execute(bound).all())
        return found

    def _times(self, case: _Case, way: str) -> object:
        """Return write times, and TTLs in hours: those of two loads differ by seconds."""
        timed = [quoted(c.name) for c in case.table.others if not is_multi_cell(c)]
        if not timed:
            return []
        columns = ", ".join(f"writetime({name}), ttl({name})" for name in timed)
        name = f"{self._keyspace}.{case.name(way)}"
        rows = self._node.session.execute(f"SELECT {columns} FROM {name}")
        found = []
        for row in rows:
            times, ttls = row[0::2], row[1::2]
            assert all(ttl is None or TTL_S - 1000 < ttl <= TTL_S for ttl in ttls)
            found.append((times, [ttl is None for ttl in ttls]))
        return found

    def _compare_files(self, case: _Case) -> None:
        theirs = self._theirs(case)
        (ours,) = case.ours.glob("*-Data.db")
        wanted, found = read_components(theirs), read_components(ours)
        assert data_of(found) == data_of(wanted), (data_of(found), data_of(wanted))
        for name in ("Index.db", "Summary.db"):
            assert found[name] == wanted[name], name
        assert_same_statistics(found["Statistics.db"], wanted["Statistics.db"])

    def _read_by_tools(self, cases: Sequence[_Case]) -> None:
        for case in cases[: scaled(1, len(cases))]:
            with _naming(case.table):
                read_by_tools(self._node, case.ours, case.rows, self._theirs(case))

    def _theirs(self, case: _Case) -> Path:
        """Return Data.db of the node's compaction of the rows that were loaded over CQL."""
        name = f"{self._keyspace}.{case.name(BY_CQL)}"
        # What was compacted is removed a little later.
        wait_until(lambda: len(self._node.sstables(name)) == 1, "one SSTable")
        (theirs,) = self._node.sstables(name)
        return theirs


def read_by_tools(node: Node, folder: Path, rows: int, theirs: Path | None = None) -> None:
    """Have `sstabledump` and `sstablemetadata` read the only SSTable of a folder.

    `theirs`: Data.db of the same rows, written by the node. `sstabledump` of some versions ends
    with an exception for values such as an empty boolean; then it must for both.
    """
    (data,) = folder.glob("*-Data.db")
    code, said = node.try_tool("SSTableExport", str(data))
    if code and theirs is not None:
        code_of_theirs, of_theirs = node.try_tool("SSTableExport", str(theirs))
        assert (code, _exception(said)) == (code_of_theirs, _exception(of_theirs))
    else:
        assert code == 0, said[-3000:]
        start = said.index("[\n  {")  # after lines of its log
        dumped = json.loads(said[start : said.rindex("]") + 1])
        found = [row for partition in dumped for row in partition["rows"] if row["type"] == "row"]
        assert len(found) == rows
    described = node.tool("SSTableMetadataViewer", str(data))
    assert "totalRows: " in described, described
    assert "Murmur3Partitioner" in described


def _exception(said: str) -> list[str]:
    """Return the exception that ended a tool of Cassandra, with its first calls."""
    lines = said[said.index("Exception in thread") :].splitlines()
    return lines[:4]


def _has_lists(table: AnyTable) -> bool:
    return any(column.kind.name == "list" and not column.frozen for column in table.others)


@contextmanager
def _naming(table: AnyTable) -> Iterator[None]:
    """Add the table and its rows to an error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{table!r}\n{list(table.rows)!r}")
        raise
