"""Options for the spelling of values and the layout of JSON: read, refused, written, read again."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table, read_rows

COLUMNS = (
    "id int PRIMARY KEY, d date, t time, at timestamp, n int, m decimal, ok boolean, raw blob, "
    "tags list<int>, doc text"
)
NAMES = "id, d, t, at, n, m, ok, raw, tags, doc"
FILE = (
    "id;d;t;at;n;m;ok;raw;tags;doc\n"
    "1;vendredi, 9 mars 2018;122446.999;2018-03-09T17:12:32.000+01:00[Europe/Paris];7,0;"
    "1.234,50;1.0;yv66vg==;1,2,3;é\n"
    "2;jeudi, 1 février 2024;000000.000;1700000000.5;1e3;-0,5;non;0xCAFE;{4};\n"
    "3;samedi, 9 mars 2018;12:00;1700000000;2,5;1;oui;0x;[];x\n"
    "4;9 mars 2018;122446.999;1700000000;1;1;oui;0x;[];x\n"
)
READING = [
    *("-d", ";", "--date-format", "cccc, d MMMM uuuu", "--locale", "fr", "--time-format"),
    *("HHmmss.SSS", "--epoch-unit", "s", "--decimal-sep", ",", "--thousands-sep", "."),
    *("--true-words", "oui,1", "--false-words", "non,0", "--blob", "any"),
]
ACCEPT = ["--accept", "fractions,zones,collections", "--rounding", "half-even"]
ROWS = [
    (1, date(2018, 3, 9), time(12, 24, 46, 999_000), datetime(2018, 3, 9, 16, 12, 32), 7,
     Decimal("1234.50"), True, bytes.fromhex("cafebabe"), [1, 2, 3], "é"),
    (2, date(2024, 2, 1), time(0), datetime(2023, 11, 14, 22, 13, 20, 500_000), 1000,
     Decimal("-0.5"), False, b"\xca\xfe", [4], None),
    (3, date(2018, 3, 9), time(12), datetime(2023, 11, 14, 22, 13, 20), 2, Decimal(1), True, b"",
     None, "x"),
]  # fmt: skip


def reasons(fleet: Ringhaul, done: Finished) -> str:
    """Return why records of a load were rejected."""
    assert done.code == 1, done
    return fleet.run("errors", done.summary["job"]).out


def rows_of(session: Session, table: str) -> list[tuple[object, ...]]:
    """Return the rows in the types of Python, ordered by id."""
    return [
        (row[0], row[1].date(), row[2].time(), *row[3:])
        for row in sorted(read_rows(session, table, NAMES))
    ]


def test_values_by_option_are_read_refused_written_and_read_again(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    path = tmp_path / "values.csv"
    path.write_text(FILE.replace("2,5;1;oui", "2,5;1;OUI"))
    done = fleet.run("load", path, "-t", table, *READING, *ACCEPT, "--json")
    assert_report(done, rows=3, rejected=1)
    assert rows_of(cassandra_session, table) == ROWS
    assert '"9 mars 2018" is not a date' in reasons(fleet, done)
    assert fleet.run("verify", path, "-t", table, *READING, *ACCEPT).code == 1

    # Without --accept each record is a reject that names the option
    done = fleet.run("load", path, "-t", table, *READING, "--json")
    assert done.code == 1
    for option in ("--accept zones", "--accept fractions", "--rounding half-even"):
        assert option in reasons(fleet, done)

    # When the rows are written with such options
    writing = [
        *("--date-format", "cccc, d MMMM uuuu", "--locale", "fr", "--time-format", "HHmmss.SSS"),
        *("--timestamp-format", "dd/MM/yyyy HH:mm:ss.SSS", "--timezone", "Europe/Paris"),
        *("--true-words", "oui", "--false-words", "non", "--blob", "base64"),
        *("--decimal-sep", ",", "--thousands-sep", ".", "-d", ";", "--quote-all"),
    ]
    out = tmp_path / "out"
    done = fleet.run("unload", "-t", table, "-o", out, *writing)
    assert done.code == 0, done
    written = "".join(part.read_text() for part in sorted(out.glob("*.csv")))
    for text in ('"09/03/2018 17:12:32.000"', '"1.234,50"', '"oui"', '"yv66vg=="', '"122446.999"'):
        assert text in written

    # Then the folder loads with what its manifest says, and so do the files with the options
    again = create_table(cassandra_session, keyspace, COLUMNS, "again")
    assert_report(fleet.run("load", out, "-t", again, "--json"), rows=3)
    assert rows_of(cassandra_session, again) == ROWS
    once_more = create_table(cassandra_session, keyspace, COLUMNS, "once_more")
    parts = sorted(out.glob("*.csv"))
    done = fleet.run("load", *parts, "-t", once_more, *writing[:-1], "--json")
    assert_report(done, rows=3)
    assert rows_of(cassandra_session, once_more) == ROWS


def test_local_times_around_changes_of_clocks_are_exact_or_said(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    """Rows of the repeated hour stay apart in an unload; a load says what it reads."""
    columns = "sensor text, at timestamp, PRIMARY KEY (sensor, at)"
    table = create_table(cassandra_session, keyspace, columns)
    times = [datetime(2024, 10, 27, minute // 60, minute % 60) for minute in range(0, 150, 30)]
    for at in times:
        cassandra_session.execute(f"INSERT INTO {table} (sensor, at) VALUES ('s', %s)", [at])
    rows = [("s", at) for at in times]
    local = ["--timestamp-format", "yyyy-MM-dd HH:mm", "--timezone", "Europe/Berlin"]
    # Given the rows, unloaded in local time: as a folder, as JSON, with the second hour plain
    for number, options in enumerate(
        (local, [*local, "--format", "jsonl"], [*local, "--clock-changes", "second"])
    ):
        out = tmp_path / f"out{number}"
        assert fleet.run("unload", "-t", table, "-o", out, *options).code == 0
        assert "2024-10-27 02:30" in "".join(p.read_text() for p in out.iterdir())
        again = create_table(cassandra_session, keyspace, columns, f"again{number}")
        # Then every row comes back
        assert fleet.run("load", out, "-t", again).code == 0
        assert_table(cassandra_session, again, "sensor, at", rows)

    # Given a file of local times that mean two moments or none
    path = tmp_path / "local.csv"
    path.write_text("sensor,at\na,2026-10-25 02:30\nb,2026-03-29 02:30\nc,2026-07-01 12:00\n")
    table = create_table(cassandra_session, keyspace, columns, "local")
    done = fleet.run("load", path, "-t", table, *local)
    # Then the skipped one is a reject with its remedy, and the repeated one is mentioned
    assert done.code == 1
    assert "1 local time or more may be an hour off" in done.err
    first = ("a", datetime(2026, 10, 25, 0, 30))
    summer = ("c", datetime(2026, 7, 1, 10))
    assert_table(cassandra_session, table, "sensor, at", [first, summer])
    done = fleet.run("load", path, "-t", table, *local, "--json")
    said = reasons(fleet, done)
    assert '"2026-03-29 02:30" does not exist in Europe/Berlin' in said
    assert "--clock-changes forward" in said
    # And the remedy reads it, as the summer time an hour later
    done = fleet.run("load", path, "-t", table, *local, "--clock-changes", "forward")
    assert done.code == 0 and "hour off" not in done.err
    skipped = ("b", datetime(2026, 3, 29, 1, 30))
    assert_table(cassandra_session, table, "sensor, at", [first, skipped, summer])


def test_odd_names_and_spellings_are_read_or_refused_rightly(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a column whose name begins with a blank, unloaded to CSV
    columns = 'id int PRIMARY KEY, " lead" text, doc text, raw blob'
    table = create_table(cassandra_session, keyspace, columns)
    cassandra_session.execute(f"INSERT INTO {table} (id, \" lead\", raw) VALUES (1, 'x', 0xcafe)")
    names, rows = 'id, " lead", doc, raw', [(1, "x", None, b"\xca\xfe")]
    out = tmp_path / "out"
    assert fleet.run("unload", "-t", table, "-o", out).code == 0
    again = create_table(cassandra_session, keyspace, columns, "again")
    # Then the folder and its file load
    for source in (out, next(out.glob("*.csv"))):
        cassandra_session.execute(f"TRUNCATE {again}")
        assert fleet.run("load", source, "-t", again).code == 0
        assert_table(cassandra_session, again, names, rows)
    # And what PostgreSQL's COPY writes for a bytea is a blob
    path = tmp_path / "pg.txt"
    path.write_bytes(b"1\tx\t\\N\t\\\\xcafe\n2\t\\N\t\\N\t\\\\x\n")
    table = create_table(cassandra_session, keyspace, columns, "pg")
    listed = ["--dialect", "postgresql", "-m", '0=id,1=" lead",2=doc,3=raw']
    done = fleet.run("load", path, "-t", table, *listed)
    assert done.code == 0, done
    assert_table(cassandra_session, table, names, [*rows, (2, None, None, b"")])
    # And half a character, and what is not JSON, are rejects that say so
    path = tmp_path / "odd.jsonl"
    path.write_text(
        '{"id": 3, "doc": "\\ud83d"}\n{"id": 4, "doc": [NaN]}\n{"id": 5, "doc": ["NaN", 1.50]}\n'
    )
    done = fleet.run("load", path, "-t", table, "--accept", "json-text", "--json")
    said = reasons(fleet, done)
    assert "half of a surrogate pair" in said and "--encoding" not in said
    assert "a JSON array holds NaN or Infinity, which JSON does not have" in said
    kept = (5, None, '["NaN",1.50]', None)
    assert_table(cassandra_session, table, names, [*rows, (2, None, None, b""), kept])


#: How the same two objects may lie in a file, the option that reads them, and what is said without.
LAYOUTS = [
    ('[{"id": 1, "a": "x"},\n {"id": 2, "a": "y"}]', "documents", "begins with ["),
    ('{\n "id": 1,\n "a": "x"\n}\n{\n "id": 2,\n "a": "y"\n}\n', "documents", "several lines"),
    ('{"id": 1, "a": "x"}{"id": 2, "a": "y"}', "documents", "several objects on a line"),
    ('\x1e{"id": 1, "a": "x"}\n\x1e{"id": 2, "a": "y"}\n', "documents", "record separators"),
    (
        '// two\n{"id": 1, /* } */ "a": "x"}\n# [\n{"id": 2, "a": "y"}',
        "commented",
        "JSON with comments",
    ),
]


@pytest.mark.parametrize(("text", "layout", "hint"), LAYOUTS)
def test_json_of_each_layout_is_loaded(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
    text: str,
    layout: str,
    hint: str,
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text")
    path = tmp_path / "two.json"
    path.write_text(text)
    done = fleet.run("load", path, "-t", table, "--json")
    # An array can be nothing else, so it is read; all others are refused, or are rejects.
    assert done.code == 0 if text.startswith("[") else done.code in (1, 2)
    said = reasons(fleet, done) if done.code == 1 else done.err
    assert hint in said and f"--json-layout {layout}" in said
    done = fleet.run(
        "load", path, "-t", table, "--json-layout", layout, "--unit-size", "1", "--json"
    )
    assert_report(done, rows=2)
    assert_table(cassandra_session, table, "id, a", [(1, "x"), (2, "y")])
    # In UTF-16 it is the same
    path.write_text(text, "utf-16")
    done = fleet.run("load", path, "-t", table, "--json-layout", layout)
    assert done.code == 2 and "give --encoding utf-16" in done.err
    again = ["--json-layout", layout, "--encoding", "utf-16"]
    assert fleet.run("verify", path, "-t", table, *again).code == 0


def test_what_select_json_writes_is_loaded(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    cassandra_session.execute(f'CREATE TYPE {keyspace}.home ("Street" text, zip int)')
    table = create_table(
        cassandra_session,
        keyspace,
        'id int PRIMARY KEY, "Age" int, age int, "Home" frozen<home>, doc text',
    )
    cassandra_session.execute(
        f'INSERT INTO {table} (id, "Age", age, "Home", doc) '
        "VALUES (1, 7, 8, {\"Street\": 'x', zip: 5}, '{\"a\":[1.50,null]}')"
    )
    (row,) = cassandra_session.execute(f"SELECT JSON * FROM {table}")
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{row[0]}\n")
    assert fleet.run("verify", path, "-t", table).code == 0
    # An object for a text column is kept as JSON if that is accepted
    lines = [{"id": 1, "AGE": 7, "home": {"STREET": "x", "Zip": 5}, "doc": {"a": [1.5, None]}}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines).replace("1.5", "1.50"))
    done = fleet.run("load", path, "-t", table, "--skip-columns", "AGE", "--json")
    assert done.code == 1 and "--accept json-text" in reasons(fleet, done)
    options = ["--skip-columns", "AGE", "--accept", "json-text"]
    assert fleet.run("verify", path, "-t", table, *options).code == 0


def test_json_is_written_as_an_array_pretty_and_without_nulls(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, at timestamp, a text")
    for n in range(30):
        note = "x" if n % 2 else None
        cassandra_session.execute(
            f"INSERT INTO {table} (id, at, a) VALUES (%s, %s, %s)",
            (n, datetime(2024, 1, n + 1), note),
        )
    wanted = [
        {"id": n, "at": f"2024-01-{n + 1:02}"} | ({"a": "x"} if n % 2 else {}) for n in range(30)
    ]
    for layout in ("array", "pretty"):
        out = tmp_path / layout
        form = ["--format", "jsonl", "--json-layout", layout, "--no-json-nulls"]
        done = fleet.run(
            "unload", "-t", table, "-o", out, *form, "--timestamp-format", "yyyy-MM-dd"
        )
        assert done.code == 0, done
        assert "--timestamp-format yyyy-MM-dd leaves out a part of each timestamp" in done.err
        found = [row for part in out.glob("*.jsonl") for row in json.loads(part.read_text())]
        assert sorted(found, key=lambda row: row["id"]) == wanted
        again = create_table(
            cassandra_session, keyspace, "id int PRIMARY KEY, at timestamp, a text", layout
        )
        assert_report(fleet.run("load", out, "-t", again, "--json"), rows=30)
        assert_table(
            cassandra_session, again, "id, at, a", read_rows(cassandra_session, table, "id, at, a")
        )
    done = fleet.run(
        "unload", "-t", table, "-o", "-", "--format", "jsonl", "--json-layout", "array"
    )
    assert done.code == 2 and "give -o a folder" in done.err


def test_options_about_text_are_refused_for_parquet(fleet: Ringhaul, tmp_path: Path) -> None:
    done = fleet.run(
        "unload", "-t", "a.b", "-o", tmp_path / "o", "--format", "parquet", "--date-format", "%F"
    )
    assert done.code == 2 and "options that spell values are for text" in done.err
