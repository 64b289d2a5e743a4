"""The result of a query as people and programs get it."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.result_table import ROWS_SHOWN, print_result

RESULT = pa.table(
    {
        "region": ["north", None, 'a "b", c'],
        "count": [3, 20, 1],
        "sum": [Decimal("1.50"), None, Decimal("-2.00")],
        "big": pa.array([Decimal(2**64), None, Decimal(-1)], pa.decimal128(38, 0)),
        "key": pa.array([b"\x01\xff", b"", None], pa.binary()),
        "avg": [0.1, float("nan"), 1e300],
    }
)


def test_a_table_for_people_has_numbers_on_the_right(capsysbinary) -> None:  # type: ignore[no-untyped-def]
    print_result(RESULT.select(["region", "count", "sum"]), "table", None)
    assert capsysbinary.readouterr().out.decode() == (
        " region    count    sum\n"
        " --------  -----  -----\n"
        " north         3   1.50\n"
        "              20\n"
        ' a "b", c      1  -2.00\n'
    )


def test_csv_is_the_default_where_nobody_looks(capsysbinary) -> None:  # type: ignore[no-untyped-def]
    print_result(RESULT, "auto", None)
    rows = list(csv.reader(io.StringIO(capsysbinary.readouterr().out.decode())))
    assert rows == [
        ["region", "count", "sum", "big", "key", "avg"],
        ["north", "3", "1.50", "18446744073709551616", "0x01ff", "0.1"],
        ["", "20", "", "", "0x", "nan"],
        ['a "b", c', "1", "-2.00", "-1", "", "1e+300"],
    ]


def test_json_has_a_line_for_each_row(tmp_path: Path) -> None:
    print_result(RESULT.drop_columns(["avg"]), "auto", str(tmp_path / "r.json"))
    rows = [json.loads(line) for line in (tmp_path / "r.json").read_text().splitlines()]
    first = {"region": "north", "count": 3, "sum": "1.50", "big": 2**64, "key": "0x01ff"}
    assert rows[0] == first
    assert rows[1]["region"] is None


def test_parquet_by_suffix_keeps_types(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    print_result(RESULT, "auto", str(path))
    assert pq.read_table(path).schema.types == RESULT.schema.types
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"], "nothing half-written is left"


@pytest.mark.parametrize("rows", [ROWS_SHOWN, ROWS_SHOWN + 7])
def test_a_long_table_says_what_it_leaves_out(rows: int, capsysbinary) -> None:  # type: ignore[no-untyped-def]
    print_result(pa.table({"n": range(rows)}), "table", None)
    told = "... 7 more rows (--format csv shows all)" in capsysbinary.readouterr().out.decode()
    assert told == (rows > ROWS_SHOWN)
