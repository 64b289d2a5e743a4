"""Dumps in the dialects of MySQL and PostgreSQL are loaded, and unloaded, value by value."""

from __future__ import annotations

from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table

NAMES = "id, active, note, n"
COLUMNS = "id int PRIMARY KEY, active text, note text, n int"
ROWS: list[tuple[int, str | None, str | None, int | None]] = [
    (1, "Y", "plain", 10),
    (2, "N", "one\ttwo", 20),
    (3, "N", "line one\nline two", None),
    (4, "", "back\\slash", 7),
    (5, None, None, None),
    (6, "\\N", "a\r\nb\x01\x1a", 1),
    (7, "NULL", "ends in \\", -1),
    (8, "N", "\\n\\t é 😀", 0),
]
MYSQL = (
    b"1\tY\tplain\t10\n2\tN\tone\\\ttwo\t20\n3\tN\tline one\\\nline two\t\\N\n"
    b"4\t\tback\\\\slash\t7\n5\t\\N\t\\N\t\\N\n6\t\\\\N\ta\r\\\nb\x01\x1a\t1\n"
    b"7\tNULL\tends in \\\\\t-1\n8\tN\t\\\\n\\\\t \xc3\xa9 \xf0\x9f\x98\x80\t0\n"
)
POSTGRESQL = (
    b"1\tY\tplain\t10\n2\tN\tone\\ttwo\t20\n3\tN\tline one\\nline two\t\\N\n"
    b"4\t\tback\\\\slash\t7\n5\t\\N\t\\N\t\\N\n6\t\\\\N\ta\\r\\nb\x01\x1a\t1\n"
    b"7\tNULL\tends in \\\\\t-1\n8\tN\t\\\\n\\\\t \\303\\251 \xf0\x9f\x98\x80\t0\n\\.\n"
)


@pytest.mark.parametrize(("name", "dump"), [("mysql", MYSQL), ("postgresql", POSTGRESQL)])
def test_a_dump_is_loaded_verified_unloaded_and_loaded_again(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
    name: str,
    dump: bytes,
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    path = tmp_path / "people.txt"
    path.write_bytes(dump)
    form = ["--dialect", name, "--columns", "id,active,note,n"]
    done = fleet.run("load", path, "-t", table, *form, "--unit-size", "1", "--json")
    assert_report(done, rows=len(ROWS))
    assert_table(cassandra_session, table, NAMES, ROWS)
    assert fleet.run("verify", path, "-t", table, *form).code == 0

    # When it is unloaded for each program and loaded again, with the manifest's dialect
    for other in ("mysql", "postgresql", "excel"):
        out = tmp_path / other
        assert fleet.run("unload", "-t", table, "-o", out, "--dialect", other).code == 0
        again = create_table(cassandra_session, keyspace, COLUMNS, f"again_{other}")
        done = fleet.run("load", out, "-t", again, "--json")
        assert_report(done, rows=len(ROWS))
        assert_table(cassandra_session, again, NAMES, ROWS)

    # Then values are read in this dialect, too
    inserted = create_table(cassandra_session, keyspace, COLUMNS, "inserted")
    insert = f"INSERT INTO {inserted} (id, active, note, n) VALUES (?, ?, ?, ?)"
    done = fleet.run("exec", insert, "--params", path, "--values-dialect", name)
    assert done.code == 0, done
    assert_table(cassandra_session, inserted, NAMES, ROWS)
