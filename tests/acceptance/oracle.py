"""The content of a table as the driver reads it, independent of ringhaul's code.

Values are compared as the bytes that Cassandra stores (`text_as_blob(...)`): no digit of a
timestamp or a decimal gets lost on the way through Python's types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cassandra.cluster import Session

from tests.acceptance.command import Finished

Row = tuple[Any, ...]


def create_table(session: Session, keyspace: str, definition: str, name: str = "t") -> str:
    """Create a table from its columns and key, and return its full name."""
    session.execute(f"CREATE TABLE {keyspace}.{name} ({definition})")
    return f"{keyspace}.{name}"


def read_rows(session: Session, table: str, columns: str) -> list[Row]:
    """Return every row of the table, as the driver reads it."""
    return [tuple(row) for row in session.execute(f"SELECT {columns} FROM {table}")]


def read_stored(
    session: Session, table: str, key: str, types: Mapping[str, str]
) -> dict[Any, dict[str, bytes | None]]:
    """Map key -> column -> the stored bytes, or None for a null.

    `types` maps columns to their CQL types; `key` is a column that identifies the row.
    """
    blobs = [
        name if cql == "blob" else f"{'text' if cql == 'varchar' else cql}_as_blob({name})"
        for name, cql in types.items()
    ]
    found: dict[Any, dict[str, bytes | None]] = {}
    for row in session.execute(f"SELECT {key}, {', '.join(blobs)} FROM {table}"):
        assert row[0] not in found, f"{key} {row[0]!r} is in two rows"
        found[row[0]] = dict(zip(types, row[1:], strict=True))
    return found


def write_times(session: Session, table: str, key: str, column: str) -> dict[Any, int]:
    """Map key -> the write timestamp of a column, in microseconds."""
    rows = session.execute(f"SELECT {key}, writetime({column}) FROM {table}")
    return {row[0]: row[1] for row in rows}


def assert_table(session: Session, table: str, columns: str, expected: Iterable[Row]) -> None:
    """Assert that the table holds exactly the expected rows, in any order."""
    found = sorted(read_rows(session, table, columns), key=_order)
    wanted = sorted(expected, key=_order)
    for left, right in zip(found, wanted, strict=False):
        assert left == right
    assert len(found) == len(wanted)


def assert_report(
    finished: Finished,
    *,
    rows: int,
    rejected: int = 0,
    code: int | None = None,
    state: str | None = None,
) -> dict[str, Any]:
    """Assert that the `--json` summary has these counts, and return the summary."""
    summary = finished.summary
    assert (summary["rows"], summary["rejected"], summary["records"]) == (
        rows,
        rejected,
        rows + rejected,
    ), finished
    assert finished.code == (code if code is not None else int(rejected > 0)), finished
    assert summary["exit_code"] == finished.code
    assert summary["state"] == (state or ("PARTIAL" if rejected else "COMPLETE"))
    assert summary["units_quarantined"] == 0
    if state is None:
        assert summary["units_done"] == summary["units"]
    sources = summary["sources"]
    assert sum(source["written"] for source in sources) == rows
    assert sum(source["rejected"] for source in sources) == rejected
    return summary


def _order(row: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(repr, row))
