"""Unloaded files are compared with the loaded file: every row, every value."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from bench.contents import check_contents, check_rows, count_rows, row_files
from bench.data import SMALL, data_file, keys_file, same_file
from ringhaul.cluster.schema import ColumnSchema, TableSchema

TYPES = ("text", "bigint", "double", "double", "text", "timestamp")
TABLE = TableSchema(
    keyspace="bench",
    table="small",
    columns=tuple(
        ColumnSchema(name=name, cql_type=kind)
        for name, kind in zip(SMALL.columns, TYPES, strict=True)
    ),
    partition_key=("id",),
    clustering_key=(),
)
HEADER = ",".join(SMALL.columns) + "\n"


def unloaded(record: str) -> str:
    """A record of the source as an unload spells it: shortest floats, ISO 8601 times."""
    key, seq, temperature, humidity, sensor, taken = record.rstrip("\n").split(",")
    time = taken.replace(" ", "T").replace("+0000", ".000Z")
    return f"{key},{seq},{float(temperature)!r},{float(humidity)!r},{sensor},{time}\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return data_file(tmp_path / "data", SMALL, rows=100)


@pytest.fixture
def records(source: Path) -> list[str]:
    return [unloaded(line) for line in source.read_text().splitlines()[1:]]


def parts(folder: Path, records: list[str]) -> list[Path]:
    """The records in two files, the last ones first."""
    folder.mkdir()
    (folder / "a.csv").write_text(HEADER + "".join(records[60:]))
    (folder / "b.csv").write_text(HEADER + "".join(records[:60]))
    (folder / "_manifest.json").write_text("{}")
    return row_files(folder)


def test_rows_may_be_in_any_order_and_file(
    source: Path, records: list[str], tmp_path: Path
) -> None:
    files = parts(tmp_path / "out", records)

    assert [file.name for file in files] == ["a.csv", "b.csv"]
    check_rows(files, 100)
    check_contents(files, source, TABLE)


def test_parquet_is_compared_by_the_same_rule(
    source: Path, records: list[str], tmp_path: Path
) -> None:
    convert = pc.ConvertOptions(
        column_types={name: kind.arrow() for name, kind in TABLE.types.items()}
    )
    table = pc.read_csv(parts(tmp_path / "out", records)[0], convert_options=convert)
    parquet = tmp_path / "part.parquet"
    pq.write_table(table.select(list(reversed(SMALL.columns))), parquet)

    assert count_rows([parquet]) == 40
    check_contents([parquet, tmp_path / "out" / "b.csv"], source, TABLE)
    with pytest.raises(RuntimeError, match="40 rows were read, of 100"):
        check_contents([parquet], source, TABLE)


@pytest.mark.parametrize("column", range(1, 6))
def test_one_value_that_differs_is_found(
    source: Path, records: list[str], tmp_path: Path, column: int
) -> None:
    fields = records[41].rstrip("\n").split(",")
    other = records[42].rstrip("\n").split(",")
    fields[column] = "x" if fields[column] == other[column] else other[column]
    records[41] = ",".join(fields) + "\n"

    with pytest.raises(RuntimeError, match=f"column {SMALL.columns[column]} is not"):
        check_contents(parts(tmp_path / "out", records), source, TABLE)


def test_rows_that_are_missing_or_come_twice_are_found(
    source: Path, records: list[str], tmp_path: Path
) -> None:
    files = parts(tmp_path / "out", records[:-1])
    with pytest.raises(RuntimeError, match="99 rows are in 2 files, and 100"):
        check_rows(files, 100)

    twice = parts(tmp_path / "twice", [*records[:-1], records[0]])
    with pytest.raises(RuntimeError, match="column id is not"):
        check_contents(twice, source, TABLE)


def test_a_look_up_is_compared_with_the_rows_of_its_keys(
    source: Path, records: list[str], tmp_path: Path
) -> None:
    keys = keys_file(source, 30)
    wanted = keys.read_text().split()

    assert wanted[0] == "id" and len(set(wanted[1:])) == 30
    assert wanted[1:] != sorted(wanted[1:])
    found = [record for record in records if record.partition(",")[0] in wanted]
    check_contents(parts(tmp_path / "out", found), source, TABLE, pa.array(wanted[1:]))


def test_a_file_of_one_value_has_its_header(tmp_path: Path) -> None:
    assert same_file(tmp_path, "key", "local", 3).read_text() == "key\nlocal\nlocal\nlocal\n"
