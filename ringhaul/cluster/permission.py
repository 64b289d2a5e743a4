"""Check that the session's role may write to a table, without writing."""

from __future__ import annotations

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from ringhaul.cluster.schema import TableSchema, quote_identifier


def check_may_write(session: Session, table: TableSchema) -> None:
    """Raise the driver's error, such as `Unauthorized`, that a write to the table would raise.

    Nodes check permissions before the consistency level. No write is allowed at SERIAL, and no key
    is null, so the write made here always fails.
    """
    names = [quote_identifier(name) for name in table.primary_key]
    nulls = ", ".join("null" for _ in names)
    where = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
    insert = f"INSERT INTO {where} ({', '.join(names)}) VALUES ({nulls})"
    try:
        session.execute(SimpleStatement(insert, consistency_level=ConsistencyLevel.SERIAL))
    except InvalidRequest:
        return
    raise AssertionError("a node has taken a row without a key")
