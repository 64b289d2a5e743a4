"""Folders of `unload` are read by other programs as they are, with every row and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import create_table

ROOT = Path(__file__).parents[2]
ROWS = [(n, f"region {n % 3}", f"note {n}") for n in range(300)]
WAYS = {
    "parts": (),
    "partitions": ("--partition-by", "region"),
    "one file": ("--single-file",),
}


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    ddl = "id int PRIMARY KEY, region text, note text"
    name = create_table(cassandra_session, module_keyspace, ddl, "sales")
    insert = cassandra_session.prepare(f"INSERT INTO {name} (id, region, note) VALUES (?, ?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, ROWS, concurrency=100)
    return name


def test_the_page_is_right(fleet: Ringhaul, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-to" / "read-exports.md").read_text()
    commands = re.findall(r"^\$ (ringhaul unload .*)$", page, re.M)
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    for command in commands:
        done = fleet.run_script(command.replace("shop.orders", table))
        assert done.code == 0, done
    monkeypatch.chdir(fleet.cwd)
    names: dict[str, Any] = {}
    exec(code, names)
    columns = ["id", "region", "note"]
    assert sorted_rows(names["sales"][columns].itertuples(index=False)) == ROWS
    for found in (names["regions"], names["text"]):
        assert isinstance(found, pa.Table)
        assert sorted_rows(zip(*found.select(columns).to_pydict().values(), strict=True)) == ROWS
    assert names["count"] == [(len(ROWS),)]


def sorted_rows(rows: Iterable[Any]) -> list[tuple[int, str, str]]:
    return sorted((int(number), str(region), str(note)) for number, region, note in rows)


def spark_files(folder: Path) -> list[Path]:
    """The files that Spark reads: it leaves out names that begin with a dot, or with an underscore
    and have no equals sign, at any depth."""

    def is_left_out(name: str) -> bool:
        return name.startswith(".") or (name.startswith("_") and "=" not in name)

    paths = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if not any(map(is_left_out, path.relative_to(folder).parts))]


@pytest.mark.parametrize("way", WAYS)
def test_parquet(fleet: Ringhaul, table: str, tmp_path: Path, way: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    options = ("-o", f"{out}/", "--format", "parquet", *WAYS[way])
    assert fleet.run("unload", "-t", table, *options).code == 0
    assert (out / "_manifest.json").is_file()
    columns = ["id", "region", "note"]
    frame = pd.read_parquet(out)[columns]
    assert sorted_rows(frame.itertuples(index=False)) == ROWS
    found = ds.dataset(out, format="parquet", partitioning="hive").to_table(columns)
    assert sorted_rows(zip(*found.to_pydict().values(), strict=True)) == ROWS
    query = f"SELECT id, region, note FROM read_parquet('{out}/**/*.parquet')"
    assert sorted_rows(duckdb.sql(query).fetchall()) == ROWS
    assert {path.suffix for path in spark_files(out)} == {".parquet"}


@pytest.mark.parametrize("way", WAYS)
def test_csv(fleet: Ringhaul, table: str, tmp_path: Path, way: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert fleet.run("unload", "-t", table, "-o", f"{out}/", *WAYS[way]).code == 0
    columns = ["id", "region", "note"]
    found = ds.dataset(out, format="csv", partitioning="hive").to_table(columns)
    assert sorted_rows(zip(*found.to_pydict().values(), strict=True)) == ROWS
    query = f"SELECT id, region, note FROM read_csv('{out}/**/*.csv', hive_partitioning=true)"
    assert sorted_rows(duckdb.sql(query).fetchall()) == ROWS
    files = spark_files(out)
    assert {path.suffix for path in files} == {".csv"}
    assert sum(len(path.read_text().splitlines()) - 1 for path in files) == len(ROWS)
