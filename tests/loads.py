"""Load jobs for tests, made by hand: no cluster, no settings, no command line."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cql.text import TextFormat
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import START, Block, Position, read_blocks
from ringhaul.records.account import UnitOutcome
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rejects import Reject, unpack_rejects
from ringhaul.sources.source import SourceFile
from ringhaul.statements.values import StatementValues


def table_schema(
    columns: Mapping[str, str], partition_key: Sequence[str], clustering_key: Sequence[str] = ()
) -> TableSchema:
    """`shop.orders` with these columns (name -> CQL type)."""
    return TableSchema(
        keyspace="shop",
        table="orders",
        columns=tuple(ColumnSchema(name=name, cql_type=kind) for name, kind in columns.items()),
        partition_key=tuple(partition_key),
        clustering_key=tuple(clustering_key),
    )


def load_source(
    fields: Sequence[str],
    *,
    path: str = "/data/orders.csv",
    size_bytes: int = 0,
    whole: bool = False,
    mapping: Sequence[tuple[str, str]] | None = None,
    start: Position = START,
) -> LoadSource:
    """A source whose fields are mapped to columns of the same names, unless `mapping` is given."""
    return LoadSource(
        file=SourceFile(path, size_bytes, whole),
        fields=tuple(fields),
        mapping=tuple(mapping if mapping is not None else ((name, name) for name in fields)),
        start_offset_bytes=start.offset_bytes,
        start_line=start.line,
    )


def load_job(table: TableSchema, *sources: LoadSource, **options: Any) -> LoadJob:
    """A job over `sources`, by default one with the fields of the table."""
    return LoadJob(
        **{
            "table": table,
            "cluster_name": "test",
            "sources": sources or (load_source(table.column_names),),
            "dialect": CsvDialect(),
            "text": TextFormat(),
            "base_us": 1_700_000_000_000_000,
            "unit_bytes": 1 << 20,
        }
        | options
    )


def statement_values(table: TableSchema, *sources: LoadSource, **facts: Any) -> StatementValues:
    """Values for a statement with the columns of the table as its markers, read like `load_job`."""
    sources = sources or (load_source(table.column_names),)
    return StatementValues(**{"table": table, "sources": sources, "unit_bytes": 1 << 20} | facts)


def blocks(text: bytes, dialect: CsvDialect, *, start: Position = START) -> list[Block]:
    """The blocks of a source with `text` at position `start`."""
    return list(read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=start))


def rejects_of(outcome: UnitOutcome) -> list[Reject]:
    """The rejects of a unit, in the order of the input."""
    return sorted(unpack_rejects(outcome.rejects_blob), key=lambda reject: reject.offset)
