"""Functions of a row: dicts in, dicts out, errors by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ringhaul.transform import each_row
from ringhaul.transform import each_row as decorator
from ringhaul.transform.each_row import EachRow
from tests.unit.transform.functions import batch_of, chain_of, rows_of


def run(function: Any, batch: pa.RecordBatch, **options: Any) -> Any:
    return rows_of(chain_of(function, **options), batch)


def test_a_row_becomes_one_several_or_none() -> None:
    @each_row
    def spread(row: dict[str, Any]) -> Any:
        match row["kind"]:
            case "one":
                return {"id": row["id"]}
            case "two":
                return [{"id": row["id"]}, {"id": row["id"] + "b", "extra": 1}]
            case "empty":
                return []
        return None

    rows, errors = run(spread, batch_of(id=list("stuv"), kind=["one", "two", "empty", None]))

    assert rows == [
        (0, {"id": "s", "extra": None}),
        (1, {"id": "t", "extra": None}),
        (1, {"id": "tb", "extra": 1}),
    ]
    assert errors == {}


def test_rows_may_be_yielded_and_an_exception_between_them_fails_the_record() -> None:
    @each_row
    def counted(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for n in range(row["n"]):
            if n == 3:
                raise LookupError("no fourth")
            yield {"n": n}

    rows, errors = run(counted, batch_of(n=[2, 5, 1]))

    assert rows == [(0, {"n": 0}), (0, {"n": 1}), (2, {"n": 0})]
    assert errors == {1: "t:0: LookupError: no fourth"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "TypeError: returned str, not a dict"),
        (5, "TypeError: 'int' object is not iterable"),
        ([{"n": 1}, None], "TypeError: returned NoneType, not a dict"),
    ],
)
def test_an_invalid_row_is_an_error_of_its_record(given: Any, message: str) -> None:
    rows, errors = run(each_row(lambda row: given if row["n"] else row), batch_of(n=[0, 1]))
    assert rows == [(0, {"n": 0})]
    assert errors == {1: f"t:0: {message}"}


def test_an_unknown_column_is_an_error_that_says_what_to_do() -> None:
    function = each_row(lambda row: {"n": 1, row["name"]: 2})
    rows, errors = run(function, batch_of(name=["a", "b"]), names=["n", "a"])
    assert rows == [(0, {"n": 1, "a": 2})]
    assert errors == {
        1: "t:0: ValueError: gave a column 'b', which the first rows did not have: name all "
        "columns by @each_row(columns=[...])"
    }


def test_too_many_rows_of_a_record_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    module = importlib.import_module("ringhaul.transform.each_row")
    monkeypatch.setattr(module, "RECORD_ROWS_MAX", 100)

    @each_row
    def endless(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        while True:
            yield row

    assert run(endless, batch_of(n=[1]))[1] == {
        0: "t:0: ValueError: gave more than 100 rows for one record"
    }


def test_a_value_without_a_python_type_fails_its_record() -> None:
    days = pa.array([0, -(2**31), 1], pa.int32()).cast(pa.date32())
    rows, errors = run(each_row(lambda row: {"d": row["d"].year}), batch_of(d=days))
    assert rows == [(0, {"d": 1970}), (2, {"d": 1970})]
    assert list(errors) == [1] and errors[1].startswith("t:0: d: ")


def test_the_decorated_function_is_still_a_function() -> None:
    @decorator(columns={"a": pa.string()})
    def shout(row: dict[str, Any]) -> dict[str, Any]:
        """Says it louder."""
        return {"a": row["a"].upper()}

    assert isinstance(shout, EachRow)
    assert shout({"a": "x"}) == {"a": "X"}
    assert (shout.__name__, shout.__doc__) == ("shout", "Says it louder.")  # type: ignore[attr-defined]
    assert shout.columns == {"a": pa.string()}
    assert each_row(columns=["a", "b"])(shout).columns == {"a": None, "b": None}


def test_between_functions_values_become_columns_of_their_common_type() -> None:
    seen: list[pa.Schema] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.schema)
        return batch

    function = each_row(lambda row: {"n": row["n"], "mixed": "x" if row["n"] % 2 else 5})
    rows, errors = run_two(function, look, batch_of(n=[1, 2]))

    assert errors == {}
    assert seen[0].field("n").type == pa.int64()
    assert [row["mixed"] for _, row in rows] == ["x", "5"]


def run_two(first: Any, second: Any, batch: pa.RecordBatch) -> Any:
    return rows_of(chain_of(first, second), batch)
