"""Folders named after values: an unload with --partition-by loads again, with and without its
manifest, and folders that Spark's own conventions shape load, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_table, create_table, read_rows

ROWS = 120
COLUMNS = "id, day, region, amount"
DDL = "id int, day date, region text, amount decimal, PRIMARY KEY (id, day)"
REGIONS = [None, "a/b", "__HIVE_DEFAULT_PARTITION__"]


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    name = create_table(cassandra_session, module_keyspace, DDL, "sales")
    insert = cassandra_session.prepare(f"INSERT INTO {name} ({COLUMNS}) VALUES (?, ?, ?, ?)")
    rows = [(n, "2024-02-01", REGIONS[n % len(REGIONS)], n) for n in range(ROWS)]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=100)
    return name


def assert_loads(fleet: Ringhaul, session: Session, table: str, source: Path) -> None:
    again = create_table(session, table.split(".")[0], DDL, "again")
    done = fleet.run("load", source, "-t", again, "--json")
    assert (done.code, done.summary["rows"], done.summary["rejected"]) == (0, ROWS, 0), done
    assert_table(session, again, COLUMNS, read_rows(session, table, COLUMNS))
    session.execute(f"DROP TABLE {again}")


def test_folders_load_again(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    options, out = ("-d", ";", "--decimal-sep", ","), tmp_path / "out"
    by = ("--partition-by", "day,region")
    done = fleet.run("unload", "-t", table, "-o", out, *by, *options, "--json")
    assert (done.code, done.summary["rows"]) == (0, ROWS), done
    assert {path.name for path in (out / "day=2024-02-01").iterdir()} == {
        *("region=__HIVE_DEFAULT_PARTITION__", "region=a%2Fb"),
        "region=%5F_HIVE_DEFAULT_PARTITION__",
    }
    assert_loads(fleet, cassandra_session, table, out)
    (out / "_manifest.json").unlink()
    # Without it, a line says that the unload may not have finished, and folders give the columns.
    for given in ((), ("--hive-partitioning",)):
        same = fleet.run("verify", out, "-t", table, *given, *options, "--json")
        assert (same.code, same.summary["rows"]) == (0, ROWS), same
        assert ("day, region are taken from the names of folders" in same.err) != bool(given)
        assert f"warning: {out} has parts of the unload" in same.err


def test_folders_of_another_writer_load(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    # Given a data set as Arrow writes it for Hive and Spark, without texts that it cannot tell
    rows = [
        {"id": n, "day": str(day), "region": region, "amount": amount}
        for n, day, region, amount in read_rows(cassandra_session, table, COLUMNS)
        if region != "__HIVE_DEFAULT_PARTITION__"
    ]
    known = pa.Table.from_pylist(rows)
    form = ds.partitioning(
        pa.schema([("day", pa.string()), ("region", pa.string())]), flavor="hive"
    )
    ds.write_dataset(known, tmp_path, format="parquet", partitioning=form)
    again = create_table(cassandra_session, table.split(".")[0], DDL, "again")
    done = fleet.run("load", tmp_path, "-t", again, "--json")
    assert (done.code, done.summary["rows"]) == (0, len(rows)), done
    assert "day, region are taken from the names of folders" in done.err
    written = {row for row in read_rows(cassandra_session, table, COLUMNS) if "__" not in str(row)}
    assert_table(cassandra_session, again, COLUMNS, sorted(written, key=str))
    done = fleet.run("verify", tmp_path, "-t", table, "--hive-partitioning", "--json")
    assert (done.code, done.summary["rows"]) == (0, len(rows)), done
    # And ours is read by Arrow as it is meant
    ours = tmp_path / "ours"
    fleet.run("unload", "-t", table, "-o", ours, "--format", "parquet", "--partition-by", "day")
    assert pq.read_table(ours).num_rows == ROWS
    shutil.rmtree(ours)


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("dya", "is not among the columns that are written"),
        ("id,day,region,amount", "leaves no column for the files"),
        ("", "--partition-by is empty"),
    ],
)
def test_columns_that_cannot_name_folders_are_refused(
    fleet: Ringhaul, table: str, tmp_path: Path, by: str, why: str
) -> None:
    refused = fleet.run("unload", "-t", table, "-o", tmp_path, "--partition-by", by)
    assert (refused.code, why in refused.err) == (2, True), refused


def test_folders_are_not_one_file(fleet: Ringhaul, table: str, tmp_path: Path) -> None:
    for output in ("-", tmp_path / "a.csv"):
        refused = fleet.run("unload", "-t", table, "-o", output, "--partition-by", "day")
        assert (refused.code, "--partition-by makes folders" in refused.err) == (2, True), refused
