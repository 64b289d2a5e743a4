"""JSON Lines: every type, bad records, unknown names, and refused files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance import all_types
from tests.acceptance.all_types import assert_rows, json_line, make_table
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table


def write_lines(path: Path, *lines: str) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def test_every_type_is_read_from_json_lines(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = make_table(cassandra_session, keyspace)
    rows = list(all_types.rows(300))
    write_lines(fleet.cwd / "rows.jsonl", *map(json_line, rows))

    done = fleet.run("load", "rows.jsonl", "-t", table, "--json")

    assert_report(done, rows=300)
    assert_rows(cassandra_session, table, rows)


def test_every_type_is_read_from_csv_with_json_in_the_nested_columns(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = make_table(cassandra_session, keyspace)
    rows = list(all_types.rows(100))
    lines = [",".join(all_types.TYPES)]
    for row in rows:
        cells = []
        for name, value in row.items():
            nested = name.startswith("n_") and value is not None
            text = json.dumps(value.json) if nested else str(value.json) if value else None
            # A quoted field is a value; an empty one is null.
            cells.append("" if text is None else '"' + text.replace('"', '""') + '"')
        lines.append(",".join(cells))
    write_lines(fleet.cwd / "rows.csv", *lines)

    done = fleet.run("load", "rows.csv", "-t", table, "--json")

    assert_report(done, rows=100)
    assert_rows(cassandra_session, table, rows)


def test_compressed_and_split_files_and_standard_input(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    lines = [json.dumps({"id": n, "v": "x" * 900 + str(n)}) for n in range(3000)]
    (fleet.cwd / "a.ndjson.gz").write_bytes(gzip.compress("\n".join(lines[:500]).encode()))
    write_lines(fleet.cwd / "b.json", *lines[500:2900])

    done = fleet.run("load", "a.ndjson.gz", "b.json", "-t", table, "--json", "--unit-size", "64K")
    piped = fleet.run("load", "-", "--format", "jsonl", "-t", table, "--json",
                      stdin="\n".join(lines[2900:]).encode())  # fmt: skip

    assert assert_report(done, rows=2900)["units"] > 10
    assert_report(piped, rows=100)
    expected = [(n, "x" * 900 + str(n)) for n in range(3000)]
    assert_table(cassandra_session, table, "id, v", expected)


def test_a_bad_record_is_rejected_alone_with_its_path(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, tags list<int>")
    bad = [
        ('{"id": 1, "tags": [1, 2, 3, "x"]}', 'cast int: tags[3]: "x" is not a whole number'),
        ('{"id": 2, "tags": [null]}', "cast int: tags[0]: null is not allowed in a list"),
        ('{"id": 3, "tags": [1]', "not JSON: Expecting ',' delimiter at character 22"),
        ("[3]", "not a JSON object"),
        ('{"id": 4, "tag": [1]}', 'no column is named "tag"'),
        ('{"tags": [1]}', "null in the primary key; it needs a value"),
    ]
    write_lines(
        fleet.cwd / "bad.jsonl", '{"id": 0, "tags": []}', *(text for text, _ in bad), '{"id": 9}'
    )

    done = fleet.run("load", "bad.jsonl", "-t", table, "--json")

    summary = assert_report(done, rows=2, rejected=len(bad))
    assert_table(cassandra_session, table, "id, tags", [(0, None), (9, None)])
    errors = fleet.run("errors", summary["job"], "--json")
    rejects = [json.loads(line) for line in errors.out.splitlines()]
    assert [reject["reason"] for reject in rejects] == [reason for _, reason in bad]
    assert [reject["line"] for reject in rejects] == list(range(2, 8))
    fleet.run("errors", summary["job"], "--export", "again.jsonl")
    again = (fleet.cwd / "again.jsonl").read_text().splitlines()
    assert again == [text for text, _ in bad]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (("--skip-columns", "extra"), [(1, "a")]),
        (("--allow-extra-fields",), [(1, "a")]),
        (("--mapping", "id=id,extra=v"), [(1, "b")]),
    ],
)
def test_names_without_a_column(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    options: tuple[str, ...],
    rows: list[tuple[int, str]],
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    write_lines(fleet.cwd / "x.jsonl", '{"id": 1, "v": "a", "extra": "b"}')

    assert_report(fleet.run("load", "x.jsonl", "-t", table, "--json"), rows=0, rejected=1)
    assert_report(fleet.run("load", "x.jsonl", "-t", table, "--json", *options), rows=1)
    assert_table(cassandra_session, table, "id, v", rows)
