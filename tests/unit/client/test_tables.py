"""Tables in memory as Parquet files, and files as tables."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.client import tables
from ringhaul.client.errors import UsageError

TABLE = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", None, "c"]})


def written(data: object, path: Path) -> pa.Table:
    tables.write_table(data, path)
    return tables.read_file(path)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        pd.DataFrame({"id": pd.array([1, 2, 3], "int32"), "name": ["a", None, "c"]}),
    ],
    ids=["table", "batch", "reader", "frame"],
)
def test_each_kind_of_table_is_written_with_its_values(data: object, tmp_path: Path) -> None:
    assert tables.is_table(data)
    found = written(data, tmp_path / "t.parquet")
    assert found.to_pydict() == TABLE.to_pydict()
    assert found.schema.field("id").type == pa.int32()


def test_a_list_of_dictionaries_is_a_table(tmp_path: Path) -> None:
    rows = [{"id": 1, "price": Decimal("1.50")}, {"id": 2, "price": None}]
    assert tables.is_table(rows)
    assert written(rows, tmp_path / "t.parquet").to_pylist() == rows


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [7, 8], "n": [1, 2]})
    assert written(frame.set_index("id"), tmp_path / "a").column_names == ["n", "id"]
    assert written(frame[frame.n == 2], tmp_path / "b").to_pylist() == [{"id": 8, "n": 2}]


def test_uuids_of_python_are_uuids(tmp_path: Path) -> None:
    one = uuid.uuid4()
    found = written(pd.DataFrame({"u": [one, None]}), tmp_path / "t")
    assert found.to_pylist() == [{"u": one}, {"u": None}]


def test_a_stream_is_written_in_bounded_memory(tmp_path: Path) -> None:
    """Row groups of many small batches and of one large batch: none above its limits."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 1000, 10):
            ids = list(range(start, start + 10))
            yield pa.record_batch([ids, ["x" * 100_000] * 10], schema=schema)
        ids = list(range(1000, 71_000))
        yield pa.record_batch([ids, [""] * len(ids)], schema=schema)

    before = pa.total_allocated_bytes()
    most = 0

    def watched() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for batch in batches():
            most = max(most, pa.total_allocated_bytes() - before)
            yield batch

    path = tmp_path / "t.parquet"
    tables.write_table(pa.RecordBatchReader.from_batches(schema, watched()), path)
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
        assert max(group.num_rows for group in groups) <= tables.GROUP_ROWS_MAX
        assert max(group.total_byte_size for group in groups) <= tables.GROUP_BYTES_MAX
        assert len(groups) >= 3
        read = [n for batch in file.iter_batches(columns=["id"]) for n in batch["id"].to_pylist()]
    assert read == list(range(71_000))
    assert most < 4 * tables.GROUP_BYTES_MAX


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    found = written(TABLE.slice(0, 0), tmp_path / "t.parquet")
    assert (found.num_rows, found.schema.names) == (0, ["id", "name"])


def test_values_without_a_type_of_arrow_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be written as Parquet.*tags"):
        tables.write_table(pd.DataFrame({"tags": [object()]}), tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ("a.csv", ["a.csv"]),
        (Path("a b"), ["a b"]),
        (["s3://b/*.csv", Path("c")], ["s3://b/*.csv", "c"]),
    ],
)
def test_names_of_files(data: object, names: list[str]) -> None:
    assert not tables.is_table(data)
    assert tables.file_names(data) == names


@pytest.mark.parametrize("data", ["-", "", [], {"a": 1}, 7, [1], ["a.csv", "-"]])
def test_other_data_is_refused(data: object) -> None:
    assert not tables.is_table(data)
    with pytest.raises(UsageError):
        tables.file_names(data)


def test_keys_are_values_or_tuples(tmp_path: Path) -> None:
    tables.write_keys([3, 1], ["id"], tmp_path / "one")
    assert tables.read_file(tmp_path / "one").to_pydict() == {"id": [3, 1]}
    tables.write_keys([("a", 1), ("b", 2)], ["user", "day"], tmp_path / "two")
    two = tables.read_file(tmp_path / "two")
    assert two.to_pydict() == {"user": ["a", "b"], "day": [1, 2]}
    with pytest.raises(UsageError, match=r"a key of 1 values, \(1,\), for 2 columns"):
        tables.write_keys([1], ["user", "day"], tmp_path / "three")
    with pytest.raises(UsageError, match="no common type"):
        tables.write_keys([1, "x"], ["id"], tmp_path / "four")


def test_parts_are_read_in_order(tmp_path: Path) -> None:
    for name, values in (("b.parquet", [3]), ("a.parquet", [1, 2])):
        pq.write_table(pa.table({"id": values}), tmp_path / name)
    assert tables.read_parts(tmp_path).to_pydict() == {"id": [1, 2, 3]}
    with tables.open_parts(tmp_path) as reader:
        assert reader.read_all().to_pydict() == {"id": [1, 2, 3]}
    assert os.listdir(tmp_path)
