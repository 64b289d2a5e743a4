"""Tables in memory as Parquet files, and files as tables."""

from __future__ import annotations

import os
import re
import uuid
from collections import deque, namedtuple
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.client import growing, tables
from ringhaul.client.errors import OutputError, UsageError
from tests.unit.cost.test_time import growth_of
from tests.unit.cost.worst_cases import Case

Named = namedtuple("Named", "id")
UNION = pa.UnionArray.from_dense(
    pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
)
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


RAGGED: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "a": "x", "b": 5}, {}, {"a": "y", "id": 3}]


@pytest.mark.parametrize("data", [RAGGED, iter(RAGGED), deque(RAGGED)], ids=lambda data: type(data))
def test_records_have_the_keys_of_all(data: object, tmp_path: Path) -> None:
    assert tables.is_table(data)
    names = dict.fromkeys(("id", "a", "b"))
    assert written(data, tmp_path / "t").to_pylist() == [names | row for row in RAGGED]


def test_tables_of_one_list_have_the_columns_of_all(tmp_path: Path) -> None:
    parts = [pa.table({"id": [1]}), pd.DataFrame({"a": ["x"], "id": [2.0]})]
    wanted = [{"id": 1.0, "a": None}, {"id": 2.0, "a": "x"}]
    assert written(parts, tmp_path / "a").to_pylist() == wanted
    batches = (batch for batch in TABLE.to_batches(1))
    assert tables.is_table(batches)
    assert written(batches, tmp_path / "b").to_pylist() == TABLE.to_pylist()


def test_an_error_of_the_callers_generator_passes(tmp_path: Path) -> None:
    def records() -> Iterator[dict[str, int]]:
        yield {"id": 1}
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        tables.write_table(records(), tmp_path / "t")


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    full = tmp_path / "t"
    full.symlink_to("/dev/full")
    with pytest.raises(OutputError, match="the table cannot be written to a temporary file"):
        tables.write_table(TABLE, full)


class Lazy:
    """Like a query of a library that has not run."""

    def collect(self) -> None: ...


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([{"id": 1}, 5], "record 2 is of the type int, not a dictionary"),
        ([Named(1)], r"record 1 is of the type Named, .*give ._asdict\(\) of each"),
        ([{1: 2}], "record 1 has the key 1: keys are names of columns"),
        ([{}, {}], "no record has a key"),
        (
            ({f"k{100 * n + m}": 1 for m in range(100)} for n in range(200)),
            "more than 10,000 different keys",
        ),
        (iter([]), "gives no record"),
        (iter(["a.csv"]), "of paths: give a list"),
        ({"id": [1, 2]}, "give pyarrow.table of it"),
        (Lazy(), r"give its .collect\(\)"),
        (np.zeros((2, 2)), "give pandas.DataFrame of it"),
        (pd.Series([1], name="a"), "Series: one column is no table"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns have the name 'a'"),
        (pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]), "two columns have the name 'a'"),
        (
            pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "x")])),
            "names of the columns have several levels",
        ),
        (
            pd.DataFrame({"v": [1]}, pd.MultiIndex.from_tuples([(1, 2)], names=["k", None])),
            "a level of the index has no name",
        ),
        (pd.DataFrame({"v": [1]}, ["x"]), "the index has values and no name"),
        (pd.DataFrame({"k": [1]}, pd.Index([5], name="k")), "name of a column and of the index"),
        (pd.DataFrame({"p": pd.period_range("2024-01", periods=1, freq="M")}), "'p'.*to_timestamp"),
        (pd.DataFrame({"p": [pd.Period("2024-01")]}, dtype=object), "'p', record 1.*to_timestamp"),
        (pd.DataFrame({"i": pd.interval_range(0, 1)}), "'i'.*left and right"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([0])}), r"'s'.*to_dense"),
        (pd.DataFrame({"c": [1j]}), "'c'.*real and imaginary"),
        (pa.table({}), "no column"),
        (pa.table({"u": UNION}), "'u'.*different types in one column"),
    ],
)
def test_data_that_would_lose_something_is_refused(
    data: object, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        if tables.is_table(data):
            tables.write_table(data, tmp_path / "t")
        else:
            tables.file_names(data)


def test_a_table_with_one_column_more_takes_linear_time(tmp_path: Path) -> None:
    def widen(text: str) -> None:
        names = [f"k{n}" for n in range(len(text))]
        some, more = (pa.table({name: [1] for name in [*names, *new]}) for new in ([], ["new"]))
        growing.write_growing([more.slice(0, 0), some], tmp_path / "t.parquet")

    assert growth_of(Case("columns", widen, lambda n: "c" * n, length=1000)) == ""


VIEWS = pa.array(["x", "y"], pa.string_view())


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint32()), VIEWS), "y None x"),
        (
            pa.ListArray.from_arrays([0, 1, 2], pa.DictionaryArray.from_arrays([0, 1], VIEWS)),
            "['x'] ['y']",
        ),
        (pa.DictionaryArray.from_arrays([0, 0], pa.array([7])), "7 7"),
        (pa.RunEndEncodedArray.from_arrays([2], ["x"]), "x x"),
        (pa.array([[1], None], pa.list_view(pa.int32())), "[1] None"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), "True False"),
        (
            pa.array([pa.MonthDayNano([1, 2, 3]), None]).slice(0, 2),
            "{'months': 1, 'days': 2, 'nanoseconds': 3} None",
        ),
    ],
    ids=["texts", "nested", "numbers", "runs", "view", "bool8", "interval"],
)
def test_types_that_parquet_lacks_are_written_by_their_values(
    column: pa.Array, wanted: str, tmp_path: Path
) -> None:
    """The first is how Polars gives its Categorical and Enum."""
    for cut in (0, 1):
        found = written(pa.table({"a": column.slice(cut)}), tmp_path / f"t{cut}").column("a")
        assert list(map(str, found.to_pylist())) == split(wanted)[cut:]


def split(wanted: str) -> list[str]:
    return re.findall(r"\[.*?\]|\{.*?\}|\S+", wanted)


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
        assert max(group.num_rows for group in groups) <= growing.GROUP_ROWS_MAX
        assert max(group.total_byte_size for group in groups) <= growing.GROUP_BYTES_MAX
        assert len(groups) >= 3
        read = [n for batch in file.iter_batches(columns=["id"]) for n in batch["id"].to_pylist()]
    assert read == list(range(71_000))
    assert most < 4 * growing.GROUP_BYTES_MAX


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    found = written(TABLE.slice(0, 0), tmp_path / "t.parquet")
    assert (found.num_rows, found.schema.names) == (0, ["id", "name"])


def test_values_without_a_type_of_arrow_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"column 'tags', record 1: a value of the type object"):
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


@pytest.mark.parametrize("data", ["-", "", [], {"a": 1}, 7, b"a.csv", ["a.csv", "-"]])
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
    with pytest.raises(
        UsageError, match="'id' has values of different types: int in record 1, str"
    ):
        tables.write_keys([1, "x"], ["id"], tmp_path / "four")


def test_parts_are_read_in_order(tmp_path: Path) -> None:
    for name, values in (("b.parquet", [3]), ("a.parquet", [1, 2])):
        pq.write_table(pa.table({"id": values}), tmp_path / name)
    assert tables.read_parts(tmp_path).to_pydict() == {"id": [1, 2, 3]}
    with tables.open_parts(tmp_path) as reader:
        assert reader.read_all().to_pydict() == {"id": [1, 2, 3]}
    assert os.listdir(tmp_path)
