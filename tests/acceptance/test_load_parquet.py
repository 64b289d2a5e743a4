"""Parquet: every type, row groups as units, bad rows, and types that do not fit."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session

from tests.acceptance import all_types
from tests.acceptance.all_types import arrow_table, assert_rows, make_table
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import (
    assert_report,
    assert_table,
    create_table,
    read_rows,
    write_times,
)
from tests.unit.formats.parquet_files import (
    encrypted,
    footer_of,
    in_footer,
    int96_file,
    tables,
    written,
)


def test_every_type_is_read_from_parquet(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = make_table(cassandra_session, keyspace)
    rows = list(all_types.rows(300))
    pq.write_table(arrow_table(rows), fleet.cwd / "rows.parquet", row_group_size=70)

    done = fleet.run("load", "rows.parquet", "-t", table, "--json")

    summary = assert_report(done, rows=300)
    assert summary["units"] == 5
    assert_rows(cassandra_session, table, rows)


def test_row_groups_keep_the_order_of_rows_and_may_be_skipped(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given two files with 2 rows of each key, the later of which must win
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v bigint")
    for name, first in (("a", 0), ("b", 1000)):
        found = pa.table({"id": [n % 500 for n in range(1000)], "v": range(first, first + 1000)})
        pq.write_table(found, fleet.cwd / f"{name}.parquet", row_group_size=300)

    done = fleet.run("load", "a.parquet", "b.parquet", "-t", table, "--json", "--timestamp", "5000",
                     "--skip-rows", "100", "--max-rows", "1850")  # fmt: skip

    assert_report(done, rows=1850)
    expected = [(n, 1500 + n if n < 450 else 1000 + n) for n in range(500)]
    assert_table(cassandra_session, table, "id, v", expected)
    times = write_times(cassandra_session, table, "id", "v")
    assert times == {n: 5000 + v for n, v in expected}


def test_a_bad_row_is_kept_as_json_that_loads_again(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(
        cassandra_session, keyspace,
        "id uuid PRIMARY KEY, n int, at timestamp, tags frozen<list<int>>, m map<text, int>, "
        "d decimal, b blob",
    )  # fmt: skip
    ids = [bytes([n]) * 16 for n in range(4)]
    found = pa.table(
        {
            "id": pa.array(ids, pa.binary(16)),
            "n": [1, 2**40, 3, 4],
            "at": pa.array([0, 1, 2, 10**9], pa.timestamp("us", "UTC")).take(
                pa.array([0, 0, 0, 1])
            ),
            "tags": [[1], [1, 2], [1, None], [3]],
            "m": pa.array([[], [("a", 1)], [], []], pa.map_(pa.string(), pa.int64())),
            "d": ["1.000,5", "1.000,5", "1.000,5", "1.000,5"],
            "b": [b"\xff"] * 4,
        }
    )
    pq.write_table(found, fleet.cwd / "x.parquet")

    separators = ("--decimal-sep", ",", "--thousands-sep", ".")
    options = ("-t", table, *separators, "--blob", "base64", "--timestamp-field", "at", "--json")
    done = fleet.run("load", "x.parquet", *options)

    summary = assert_report(done, rows=2, rejected=2)
    errors = fleet.run("errors", summary["job"], "--json")
    assert [json.loads(line)["reason"] for line in errors.out.splitlines()] == [
        f"cast int: {2**40} is outside -2147483648..2147483647",
        "cast int: tags[1]: null is not allowed in a list",
    ]
    fleet.run("errors", summary["job"], "--export", "again.jsonl")
    lines = (fleet.cwd / "again.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {
        "id": "01010101-0101-0101-0101-010101010101",
        "n": 2**40,
        "at": "1970-01-01T00:00:00.000000Z",
        "tags": [1, 2],
        "m": [["a", 1]],
        "d": "1000.5",
        "b": "/w==",
    }
    # When the values are corrected
    mended = "\n".join(lines).replace(str(2**40), "2").replace("null", "2")
    (fleet.cwd / "again.jsonl").write_text(mended)
    assert_report(fleet.run("load", "again.jsonl", *options), rows=2)
    # Then all rows are in the table, and the last one's microsecond is only in its write time
    expected = [
        (UUID(bytes=key), n, datetime(1970, 1, 1), Decimal("1000.5"), b"\xff", n == 4)
        for key, n in zip(ids, [1, 2, 3, 4], strict=True)
    ]
    assert_table(cassandra_session, table, "id, n, at, d, b, writetime(n)", expected)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"id": [1], "v": [[1]]},
            "column 'v' has the type list<element: int64>, which does not become text of",
        ),
        ({"id": [1], "w": ["a"]}, "field 'w' has no column 'w'"),
        ({"v": ["a"]}, "no field for primary key column 'id'"),
        ({"a": [1]}, "no column of it is one of"),
        ({"id": [1], "l": [[True]]}, "(bool does not become int)"),
    ],
)
def test_a_type_that_does_not_fit_is_refused_before_any_write(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    columns: dict[str, list[object]],
    message: str,
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text, l list<int>")
    pq.write_table(pa.table(columns), fleet.cwd / "x.parquet")

    done = fleet.run("load", "x.parquet", "-t", table)

    assert done.code == 2
    assert message in done.err.replace("\n", " "), done.err


@pytest.mark.parametrize("data", [b"", b"PAR1 and no more", b"x" * 100])
def test_a_file_that_is_not_parquet_is_reported(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, data: bytes
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    (fleet.cwd / "x.parquet").write_bytes(data)

    done = fleet.run("load", "x.parquet", "-t", table)

    assert done.code == 2
    assert "cannot be read as Parquet" in done.err


def test_a_file_that_cannot_be_read_whole_is_refused_in_a_folder(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a folder with a file that has an encrypted column, and one like it without
    columns = "id int PRIMARY KEY, v text, m double"
    table = create_table(cassandra_session, keyspace, columns)
    rows = tables()[0].select(["id", "v", "m"])
    folder = fleet.cwd / "in"
    folder.mkdir()
    pq.write_table(rows, folder / "a.parquet")
    later = rows.set_column(0, "id", pa.array(range(100, 140)))
    (folder / "b.parquet").write_bytes(encrypted(later, "v", plaintext_footer=True))
    # When it is loaded, looked at or used for values
    exec_it = ["exec", f"UPDATE {table} SET v = ? WHERE id = ?", "--params", folder / "b.parquet"]
    for command in (
        ["load", folder, "-t", table],
        ["load", folder, "-t", table, "--dry-run"],
        ["verify", folder, "-t", table],
        [*exec_it, "--values-mapping", "v=v,id=id"],
    ):
        # Then it is refused in words that name the file, before any row
        done = fleet.run(*command)
        assert done.code in (2, 4), done
        assert "b.parquet: column v is encrypted" in done.err
    assert read_rows(cassandra_session, table, "id") == []
    # And without the column every row is loaded
    done = fleet.run("load", folder, "-t", table, "--skip-columns", "v", "--json")
    assert_report(done, rows=80)
    found = {row[0]: row[1] for row in read_rows(cassandra_session, table, "id, m")}
    both = pa.concat_tables([rows, later])
    assert found == dict(zip(both["id"].to_pylist(), both["m"].to_pylist(), strict=True))
    # And a name that is not UTF-8, or a flipped bit in a page, is refused with the file's name
    data = written(rows, store_schema=False, write_page_checksum=True, compression="none")
    start, _ = footer_of(data)
    at = data.index(b"x0\x02\0\0\0x1")
    for bad, words in (
        (in_footer(data, b"\x02id", b"\x02i\xe4"), "b'i\\xe4' is not UTF-8"),
        (data[:at] + b"y" + data[at + 1 :], "CRC checksum"),
    ):
        (folder / "b.parquet").write_bytes(bad)
        assert at < start
        done = fleet.run("load", folder, "-t", table)
        assert done.code in (2, 4), done
        assert "b.parquet: " in done.err and words in done.err


def test_int96_of_distant_years_is_rejected(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given INT96 timestamps by days from 1970, two of them beyond what microseconds hold
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, ts timestamp")
    days = [0, 20_000, 107_750_000, 2**32 - 1 - 2_440_588, 2_932_896, 2_932_897, -719_162]
    data = int96_file([(5_000_000, 2_440_588 + day) for day in days])
    (fleet.cwd / "x.parquet").write_bytes(data)
    done = fleet.run("load", "x.parquet", "-t", table, "--json")
    # Then those of the years 1 to 9999 are stored, and the others are rejects that say why
    assert_report(done, rows=4, rejected=3)
    good = {
        number: day * 86_400_000 + 5 for number, day in enumerate(days) if number not in (2, 3, 5)
    }
    stored = cassandra_session.execute(f"SELECT id, blobAsBigint(timestampAsBlob(ts)) FROM {table}")
    assert {row[0]: row[1] for row in stored} == good
    said = fleet.run("errors", done.summary["job"]).out
    assert said.count("INT96 outside the years 1 to 9999 is not read") == 3
    # And the kept records have no other times in their place
    exported = fleet.cwd / "r.jsonl"
    assert fleet.run("errors", done.summary["job"], "--export", exported).code == 0
    kept = [json.loads(line) for line in exported.read_text().splitlines()]
    assert kept == [{"id": number} for number in (2, 3, 5)]


def test_dry_run_shows_a_sample_of_parquet(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    pq.write_table(pa.table({"id": [1, 2**40], "v": ["a", "b"]}), fleet.cwd / "x.parquet")

    done = fleet.run("load", "x.parquet", "-t", table, "--dry-run")

    assert done.code == 0
    assert "2 records, 1 rejected" in done.out
