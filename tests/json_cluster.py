"""A cluster that a JSON file describes, for plans without a server.

It answers all questions about its schema and its nodes, and prepares plain statements over its
tables. Anything else that only a server knows is `Unanswered`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cassandra import InvalidRequest

from ringhaul.cluster.prepared import Prepared, PreparedColumn
from ringhaul.cluster.replication import Replication
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cluster.view import (
    ClusterNode,
    KeyspaceSchema,
    RingToken,
    SizeEstimate,
    TableStorage,
)
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.streaming.owners import Owners

CLUSTER_FILE = Path(__file__).parent / "data" / "cluster.json"
_NAME = r'(?:"(?:[^"]|"")+"|\w+)'
_MARKER = rf"(?:\?|:{_NAME})"
_TABLE = re.compile(rf"\b(?:FROM|INTO|UPDATE)\s+({_NAME})\.({_NAME})", re.IGNORECASE)
_INSERT = re.compile(
    rf"INSERT\s+INTO\s+{_NAME}\.{_NAME}\s*\(([^)]*)\)\s*VALUES\s*\(([^)]*)\)", re.IGNORECASE
)
_SELECT = re.compile(r"\s*SELECT\s+(?:DISTINCT\s+)?(.*?)\s+FROM\s", re.IGNORECASE | re.DOTALL)
_ITEM = re.compile(rf"({_NAME})(?:\s+AS\s+({_NAME}))?", re.IGNORECASE)
#: What a marker stands beside: a column and an operator, or a word with a type of its own.
_BESIDE = re.compile(
    rf"({_NAME})\s*(?:[<>]=?|=|[-+])\s*({_MARKER})|\b(TTL|TIMESTAMP|LIMIT)\s+({_MARKER})",
    re.IGNORECASE,
)
_WORD_TYPES = {"ttl": "int", "timestamp": "bigint", "limit": "int"}


class Unanswered(BaseException):
    """A question that only a server can answer: the test belongs to a real cluster. Not an
    `Exception`, which a command reports as a defect."""


class JsonCluster:
    """The `ClusterView` of a JSON file. `level`: the consistency level of requests."""

    def __init__(self, level: str = "LOCAL_QUORUM", path: Path = CLUSTER_FILE) -> None:
        self._found: Mapping[str, Any] = json.loads(path.read_text())
        self.level = level
        self.name: str = self._found["name"]
        self.user = ""
        self.partitioner = "org.apache.cassandra.dht.Murmur3Partitioner"
        self.is_murmur3 = True
        self.nodes = [
            ClusterNode(host_id=f"host-{number}", **node)
            for number, node in enumerate(self._found["nodes"], 1)
        ]
        self.local_dc: str | None = self.nodes[0].data_centre
        self._keyspaces: Mapping[str, Any] = self._found["keyspaces"]

    @property
    def keyspace_names(self) -> Collection[str]:
        return list(self._keyspaces)

    def keyspace(self, name: str) -> KeyspaceSchema | None:
        found = self._keyspaces.get(name)
        if found is None:
            return None
        return KeyspaceSchema(
            name=name,
            tables=tuple(found["tables"]),
            views=found.get("views", {}),
            user_types=tuple(
                (kind, tuple(fields.items()))
                for kind, fields in found.get("user_types", {}).items()
            ),
        )

    def table(self, keyspace: str, name: str) -> TableSchema | None:
        described, found = self.keyspace(keyspace), self._keyspaces[keyspace]["tables"].get(name)
        if described is None or found is None:
            return None
        static = found.get("static", ())
        return TableSchema(
            keyspace=keyspace,
            table=name,
            columns=tuple(
                ColumnSchema(name=column, cql_type=kind, static=column in static)
                for column, kind in found["columns"].items()
            ),
            partition_key=tuple(found["partition_key"]),
            clustering_key=tuple(found.get("clustering_key", ())),
            user_types=described.user_types,
        )

    def storage(self, keyspace: str, table: str) -> TableStorage:
        return TableStorage(chunk_bytes=16 << 10)

    def replication(self, keyspace: str) -> Replication | None:
        found = self._keyspaces.get(keyspace)
        if found is None:
            return None
        by_dc = found["replication"].get("by_dc")
        nodes = {
            dc: sum(node.data_centre == dc for node in self.nodes)
            for dc in {node.data_centre for node in self.nodes}
        }
        count = found["replication"]["factor"] if by_dc is None else sum(by_dc.values())
        return Replication(keyspace, found["replication"]["class"], count, by_dc, nodes)

    def ring(self, keyspace: str) -> Sequence[RingToken]:
        step = 2**64 // len(self.nodes)
        ids = [node.host_id for node in self.nodes]
        return [
            RingToken(number * step - 2**63 + 1, owner, (owner,))
            for number, owner in enumerate(ids)
        ]

    def estimates(self, keyspace: str, table: str) -> Sequence[SizeEstimate]:
        return []  # as of a table that was just created

    def tokens(self, table: TableSchema, keys: Sequence[tuple[object, ...]]) -> Sequence[int]:
        return _unanswered(f"tokens of {table.name}")

    def prepare(self, text: str) -> Prepared:
        """Prepare an INSERT, UPDATE, DELETE or SELECT of columns over one table.

        Raises `InvalidRequest` for a column that the table lacks.
        """
        named = _TABLE.search(text)
        if named is None:
            return _unanswered(text)
        keyspace, name = map(_unquoted, named.groups())
        table = self.table(keyspace, name) if keyspace in self._keyspaces else None
        if table is None:
            raise InvalidRequest(f"table {name} does not exist")
        markers = tuple(_markers(text, table))
        if len(markers) != len(re.findall(_MARKER, text)):
            return _unanswered(text)
        return Prepared(markers=markers, result=tuple(_result(text, table)))

    def has_row(self, text: str) -> bool:
        return _unanswered(text)

    def setting(self, name: str) -> str | None:
        settings: Mapping[str, str] = self._found.get("settings", {})
        return settings.get(name)

    def schema_versions(self) -> Collection[str]:
        return ["1"]

    def table_id(self, keyspace: str, table: str) -> str:
        return _unanswered(f"the id of {keyspace}.{table}")

    def owners(self, keyspace: str, storage_port: int) -> Owners:
        return _unanswered(f"who owns the rows of {keyspace}")

    def check_may_write(self, table: TableSchema) -> None:
        """Allow every write: there are no roles."""


def _unanswered(question: str) -> NoReturn:
    raise Unanswered(f"a server has to answer: {question}")


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _markers(text: str, table: TableSchema) -> Iterator[PreparedColumn]:
    """Yield the markers of a statement, in its order."""
    if insert := _INSERT.match(text.strip()):
        names, values = ([one.strip() for one in part.split(",")] for part in insert.groups())
        for name, value in zip(names, values, strict=True):
            column = _column(table, _unquoted(name))
            if re.fullmatch(_MARKER, value):
                yield _named(column, value)
        text = text.strip()[insert.end() :]
    for column_name, marker, word, of_word in _BESIDE.findall(text):
        if column_name:
            yield _named(_column(table, _unquoted(column_name)), marker)
        else:
            kind = parse_type(_WORD_TYPES[word.lower()], {})
            yield _named(_prepared(table, f"[{word.lower()}]", kind), of_word)


def _named(column: PreparedColumn, marker: str) -> PreparedColumn:
    if marker == "?":
        return column
    return PreparedColumn(
        keyspace=column.keyspace,
        table=column.table,
        name=_unquoted(marker[1:]),
        type=column.type,
    )


def _result(text: str, table: TableSchema) -> Iterator[PreparedColumn]:
    """Yield the columns of a SELECT's result."""
    select = _SELECT.match(text)
    if select is None:
        return
    if select[1] == "*":
        yield from (_column(table, name) for name in table.column_names)
        return
    for item in select[1].split(","):
        found = _ITEM.fullmatch(item.strip())
        if found is None:
            _unanswered(text)
        column = _column(table, _unquoted(found[1]))
        yield _named(column, f":{found[2]}") if found[2] else column


def _column(table: TableSchema, name: str) -> PreparedColumn:
    if name not in table.column_names:
        raise InvalidRequest(f"Undefined column name {name} in table {table.name}")
    return _prepared(table, name, table.parsed_type(name))


def _prepared(table: TableSchema, name: str, kind: CqlType) -> PreparedColumn:
    return PreparedColumn(keyspace=table.keyspace, table=table.table, name=name, type=kind)
