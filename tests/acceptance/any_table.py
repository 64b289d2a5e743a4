"""Random table definitions, their rows as the driver binds them, and their cells as stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent
from cassandra.protocol import ProtocolHandler, ResultMessage
from cassandra.query import BoundStatement
from hypothesis import strategies as st

from ringhaul.cql.types import CqlType
from tests.property.cql.any_values import cell_of, types, values

_RESULT_OPCODE = 8


@dataclass(frozen=True)
class Column:
    """One column. `frozen` applies to collections and user-defined types."""

    name: str
    kind: CqlType
    frozen: bool = False
    static: bool = False


@dataclass(frozen=True)
class AnyTable:
    """A definition, and rows in the order of `columns`: values that the driver binds, or
    `EMPTY`."""

    partition: Sequence[Column]
    clustering: Sequence[tuple[Column, str]]  #: with ASC or DESC
    others: Sequence[Column]
    rows: Sequence[Sequence[Any]] = field(repr=False)

    @property
    def columns(self) -> list[Column]:
        return [*self.partition, *(column for column, _ in self.clustering), *self.others]


#: Names that need quoting or escaping. None begins or ends with a blank: headers drop it.
NAMES = [
    "a",
    "B c",
    "d,e",
    'f"g',
    "h'i",
    "jä",
    "k.l",
    "m:n",
    "select",
    "o\np",
    "q[0]",
    "{r}",
    "\\s",
]


@st.composite
def tables(draw: st.DrawFn, empties: Collection[str] = ()) -> AnyTable:
    """Draw a table of random columns with a random key, and its rows. `empties`: see `values`."""
    names = iter(draw(st.permutations(NAMES)))
    partition = [Column(next(names), kind, True) for kind in draw(_some(types(keyable=True), 1, 2))]
    clustering = [
        (Column(next(names), kind, True), draw(st.sampled_from(["ASC", "DESC"])))
        for kind in draw(_some(types(keyable=True), 0, 2))
    ]
    kinds = draw(_some(types(), 2, 6))
    static = st.booleans() if clustering else st.just(False)
    others = [Column(next(names), kind, draw(st.booleans()), draw(static)) for kind in kinds]
    # The server refuses a row whose partition key is one empty value.
    in_partition = empties if len(partition) > 1 else ()
    row = st.tuples(
        *(values(column.kind, in_partition, bound=True) for column in partition),
        *(values(column.kind, empties, bound=True) for column, _ in clustering),
        *(st.none() | values(column.kind, empties, bound=True) for column in others),
    )
    rows = draw(_some(row, 1, 8))
    if len(partition) == 1:
        rows = [row for row in rows if row[0] not in ("", b"")] or [_unlike_empty(rows[0])]
    return AnyTable(partition, clustering, others, rows)


def _some(items: st.SearchStrategy[Any], least: int, most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, min_size=least, max_size=most)


def _unlike_empty(row: Sequence[Any]) -> tuple[Any, ...]:
    return (b"\0" if row[0] == b"" else "a", *row[1:])


def quoted(name: str) -> str:
    """Quote a name for CQL."""
    return '"' + name.replace('"', '""') + '"'


def create_tables(session: Session, keyspace: str, table: AnyTable, names: Sequence[str]) -> None:
    """Create tables of that definition; the first name also names the user-defined types."""
    made: dict[CqlType, str] = {}

    def cql(kind: CqlType, frozen: bool) -> str:
        of = [cql(inner, True) for inner in kind.of]
        if kind.name == "udt":
            if kind not in made:
                text = quoted(f"{names[0]}_Udt{len(made)}")
                fields = zip(map(quoted, kind.fields), of, strict=True)
                columns = ", ".join(f"{name} {of}" for name, of in fields)
                session.execute(f"CREATE TYPE {keyspace}.{text} ({columns})")
                made[kind] = text
            text = made[kind]
        elif kind.of:
            text = f"{kind.name}<{', '.join(of + [str(kind.size)] * (kind.size > 0))}>"
        else:
            return kind.name
        return f"frozen<{text}>" if frozen and kind.name not in ("tuple", "vector") else text

    def listed(columns: Sequence[Column]) -> str:
        return ", ".join(quoted(column.name) for column in columns)

    columns = ", ".join(
        f"{quoted(column.name)} {cql(column.kind, column.frozen)}{' static' * column.static}"
        for column in table.columns
    )
    clustering = [column for column, _ in table.clustering]
    key = ", ".join([f"({listed(table.partition)})", *([listed(clustering)] if clustering else [])])
    order = ", ".join(f"{quoted(column.name)} {way}" for column, way in table.clustering)
    options = f" WITH CLUSTERING ORDER BY ({order})" if order else ""
    for name in names:
        session.execute(f"CREATE TABLE {keyspace}.{name} ({columns}, PRIMARY KEY ({key})){options}")


def write_rows(session: Session, name: str, table: AnyTable) -> None:
    """Write the rows with the driver, without any code under test."""
    names = ", ".join(quoted(column.name) for column in table.columns)
    marks = ", ".join("?" * len(table.columns))
    insert = session.prepare(f"INSERT INTO {name} ({names}) VALUES ({marks})")
    bound = []
    for row in table.rows:
        statement = BoundStatement(insert)
        cells = zip(table.columns, row, strict=True)
        statement.values = [cell_of(column.kind, value) for column, value in cells]
        bound.append((statement, None))
    execute_concurrent(session, bound, raise_on_first_error=True)


@contextmanager
def raw_session(session: Session) -> Iterator[Session]:
    """Open a session on the same cluster whose rows are tuples of the cells' bytes."""
    raw = session.cluster.connect()
    raw.client_protocol_handler = _RawHandler
    try:
        yield raw
    finally:
        raw.shutdown()


def stored_rows(raw: Session, name: str) -> list[dict[str, bytes | None]]:
    """Return rows in the table's order: column -> the stored bytes, or None.

    `raw`: a session from `raw_session`.
    """
    found = raw.execute(f"SELECT * FROM {name}")
    return [dict(zip(found.column_names, row, strict=True)) for row in found]


class _RawResult(ResultMessage):
    """Leave cells undecoded: the driver cannot decode every value that Cassandra can hold."""

    def recv_results_rows(
        self, f: Any, protocol_version: int, user_type_map: Any, result_metadata: Any, policy: Any
    ) -> None:
        self.recv_results_metadata(f, user_type_map)
        columns = self.column_metadata or result_metadata
        count = int.from_bytes(f.read(4), "big")
        self.column_names = [column[2] for column in columns]
        self.column_types = [column[3] for column in columns]
        self.parsed_rows = [tuple(self.recv_row(f, len(columns))) for _ in range(count)]


class _RawHandler(ProtocolHandler):
    message_types_by_opcode = ProtocolHandler.message_types_by_opcode | {_RESULT_OPCODE: _RawResult}
