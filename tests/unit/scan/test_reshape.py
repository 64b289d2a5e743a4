"""Rows through transforms into the columns of an unload, which are planned in advance."""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ringhaul.cql.types import CqlType, parse_type
from ringhaul.errors import UsageError
from ringhaul.scan.reshape import Reshaped, Reshaper, kind_of, planned_results
from ringhaul.transform import each_row
from ringhaul.transform.chain import Transform
from ringhaul.transform.errors import TransformError
from tests.cases import each
from tests.unit.transform.functions import raising_on

COLUMNS = {
    "id": "int", "key": "uuid", "price": "decimal", "at": "timestamp", "note": "ascii",
    "from_": "list<inet>",
}  # fmt: skip
NAMES = list(COLUMNS)
TYPES = [parse_type(text) for text in COLUMNS.values()]
KEY = uuid.UUID("8a6e0804-2bd0-4672-b79d-d97027f9071a")


def transforms(*functions: Any) -> list[Transform]:
    return [Transform(f"t:{number}", function) for number, function in enumerate(functions)]


def planned(*functions: Any) -> dict[str, str]:
    return {n: str(kind) for n, kind in planned_results(NAMES, TYPES, transforms(*functions))}


def batch(rows: int = 2) -> pa.RecordBatch:
    values: dict[str, list[Any]] = {
        "id": list(range(rows)),
        "key": [KEY.bytes] * rows,
        "price": ["1.50"] * rows,
        "at": [datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)] * rows,
        "note": [f"n{n}" for n in range(rows)],
        "from_": [["10.0.0.1"]] * rows,
    }
    arrays = [pa.array(values[name], kind.arrow()) for name, kind in zip(NAMES, TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, NAMES)


def reshaped(rows: pa.RecordBatch, *functions: Any) -> Reshaped:
    chosen = transforms(*functions)
    return Reshaper(chosen, planned_results(NAMES, TYPES, chosen)).run(rows)


def rows_of(found: Reshaped) -> list[dict[str, Any]]:
    return [row for out in found.rows for row in out.to_pylist()]


def test_columns_keep_their_types_except_texts_that_a_function_may_change() -> None:
    assert planned(lambda batch: batch) == {
        "id": "int", "key": "uuid", "price": "text", "at": "timestamp", "note": "text",
        "from_": "list<text>",
    }  # fmt: skip


@each(
    ("arrow", "kind"),
    [
        (pa.int64(), "bigint"),
        (pa.uint16(), "int"),
        (pa.uint64(), "text"),
        (pa.float16(), "float"),
        (pa.string(), "text"),
        (pa.large_string(), "text"),
        (pa.dictionary(pa.int8(), pa.string()), "text"),
        (pa.binary(16), "blob"),
        (pa.binary(), "blob"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.date32(), "date"),
        (pa.date64(), "date"),
        (pa.time32("s"), "time"),
        (pa.decimal128(5, 2), "text"),
        (pa.null(), "text"),
        (pa.bool_(), "boolean"),
        (pa.list_(pa.int16()), "list<smallint>"),
        (pa.map_(pa.string(), pa.float64()), "map<text, double>"),
        (pa.struct([("a", pa.int8())]), None),
        (pa.list_(pa.struct([("a", pa.int8())])), None),
        (pa.duration("s"), None),
    ],
)
def test_new_columns_are_written_by_their_arrow_type(arrow: pa.DataType, kind: str | None) -> None:
    found = kind_of(arrow)
    assert (None if found is None else str(found)) == kind


def test_functions_of_rows_declare_their_columns_or_keep_the_given_ones() -> None:
    same = each_row(lambda row: row)
    said = each_row(columns={"id": pa.int64(), "day": pa.date32()})(lambda row: row)
    named = each_row(columns=["key", "new"])(lambda row: row)
    assert planned(same) == planned(lambda batch: batch)
    assert planned(said) == {"id": "bigint", "day": "date"}
    assert planned(named) == {"key": "uuid", "new": "text"}
    assert planned(said, lambda batch: batch.append_column("n", batch.column("id"))) == {
        "id": "bigint", "day": "date", "n": "bigint",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda batch: batch.select([]), UsageError, "t:0 gives no column"),
        (
            lambda batch: batch.select(["id"]).append_column(
                "s", pa.array([], pa.struct([("a", pa.int8())]))
            ),
            UsageError,
            "gives column 's' as struct<a: int8>, which cannot be written to files",
        ),
        (lambda batch: batch.column("id")[0], TransformError, "on a batch without rows"),
        (lambda batch: 5, TransformError, "returned int, not a pyarrow.RecordBatch"),
    ],
)
def test_functions_without_columns_are_refused(
    function: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        planned(function)
    assert message in str(caught.value)


def test_rows_come_out_in_the_planned_order_and_types() -> None:
    def turned(batch: pa.RecordBatch) -> pa.RecordBatch:
        shuffled = batch.select(["note", "id", "_record"])
        if batch.num_rows:  # other encodings of the same types, and another order
            shuffled = shuffled.set_column(1, "id", pc.cast(shuffled.column("id"), "int64"))
            return shuffled.select(["id", "note", "_record"])
        return shuffled

    found = reshaped(batch(), turned)

    assert [out.schema.field("id").type for out in found.rows] == [pa.int32()]
    assert [out.schema.names for out in found.rows] == [["note", "id"]]
    assert rows_of(found) == [{"note": "n0", "id": 0}, {"note": "n1", "id": 1}]
    assert (found.dropped, found.errors) == (0, {})


def test_dropped_rows_and_errors_are_counted() -> None:
    def odd(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.equal(pc.bit_wise_and(batch.column("id"), 1), 1))

    found = reshaped(batch(200), raising_on("id", 7, 8), odd)

    assert [row["id"] for row in rows_of(found)] == [n for n in range(1, 200, 2) if n != 7]
    assert found.dropped == 99  # the even ones except 8
    assert found.errors == {n: f"t:0: ValueError: {n} it is" for n in (7, 8)}


def test_a_value_that_its_column_cannot_hold_rejects_its_input_row() -> None:
    @each_row(columns={"id": pa.int32(), "key": pa.binary(16), "note": pa.string()})
    def spread(row: dict[str, Any]) -> Any:
        yield {"id": row["id"], "key": KEY, "note": row["id"]}
        if row["id"] == 1:
            yield {"id": "one"}

    found = reshaped(batch(3), spread)

    assert rows_of(found) == [{"id": n, "key": KEY.bytes, "note": str(n)} for n in (0, 2)]
    assert list(found.errors) == [1]
    assert "t:0: column 'id': ArrowInvalid: " in found.errors[1]


NOON = datetime.datetime(2026, 1, 31, 12)
MIDNIGHT = datetime.datetime(2026, 1, 31)
EAST = datetime.timezone(datetime.timedelta(hours=2))
TIMES = pa.timestamp("ms", "UTC")


@each(
    ("arrow", "good", "bad", "message"),
    [
        (pa.int32(), 3.0, 3.7, "3.7 is not a whole number"),
        (pa.int64(), Decimal(2), Decimal("1.5"), "1.5 is not a whole number"),
        (pa.int8(), np.float32(2), np.float64(-0.5), "-0.5 is not a whole number"),
        (TIMES, NOON.replace(tzinfo=datetime.UTC), 1.5, "1.5 is not a whole number"),
        (pa.time64("ns"), datetime.time(12), 0.5, "0.5 is not a whole number"),
        (pa.time64("ns"), None, datetime.time(12, tzinfo=EAST), "12:00:00+02:00 has a time zone"),
        (pa.date32(), NOON.date(), NOON, "2026-01-31 12:00:00 is more than a date"),
        (pa.date32(), None, MIDNIGHT.replace(microsecond=1), "00:00:00.000001 is more than a date"),
        (pa.date32(), None, MIDNIGHT.replace(tzinfo=EAST), "00:00:00+02:00 is more than a date"),
        (pa.float32(), 2.0**128 - 2.0**104, 1e300, "1e+300 is outside the range of a float"),
        (pa.float32(), float("inf"), Decimal("3.5e38"), "is outside the range of a float"),
        (pa.list_(pa.int32()), [1, 2.0], [1, 2.5], "2.5 is not a whole number"),
        (pa.list_(pa.int32()), None, 5, "TypeError"),
        (pa.list_(pa.date32()), [NOON.date(), None], {NOON}, "is more than a date"),
        (pa.map_(pa.string(), pa.int8()), {"a": 1}, {"a": 0.5}, "0.5 is not a whole number"),
        (pa.map_(pa.int8(), pa.string()), [(1, "a")], [(1.5, "a")], "1.5 is not a whole number"),
        (pa.map_(pa.int8(), pa.string()), [(1, "a")], [{"k": 1}], "KeyError"),
        (pa.map_(pa.int8(), pa.string()), [(1, "a")], [(1,)], "IndexError"),
    ],
)
def test_a_value_that_its_column_would_change_rejects_its_row(
    arrow: pa.DataType, good: Any, bad: Any, message: str
) -> None:
    given = [good, bad, None]
    function = each_row(columns={"id": pa.int32(), "x": arrow})(
        lambda row: {"id": row["id"], "x": given[row["id"]]}
    )

    found = reshaped(batch(3), function)

    expected = dict(good) if isinstance(good, list) and pa.types.is_map(arrow) else good
    rows = rows_of(found)
    if pa.types.is_map(arrow):
        rows[0]["x"] = dict(rows[0]["x"])
    assert [row["id"] for row in rows] == [0, 2]
    assert rows[0]["x"] == expected and rows[1]["x"] is None
    assert list(found.errors) == [1]
    assert found.errors[1].startswith("t:0: column 'x': ") and message in found.errors[1]


def test_fields_of_a_user_defined_type_are_no_exception() -> None:
    kind = parse_type("frozen<spot>", {"spot": (("x", "int"), ("at", "date"))})
    given: list[Any] = [{"x": 1, "at": NOON.date()}, {"x": 1.5}, (2, NOON), (3, None), None]
    chosen = transforms(each_row(lambda row: {"s": given[row["n"]]}))
    results = [("s", kind)]

    found = Reshaper(chosen, results).run(pa.RecordBatch.from_pydict({"n": list(range(5))}))

    assert list(found.errors) == [1, 2]
    assert rows_of(found) == [
        {"s": {"x": 1, "at": NOON.date()}}, {"s": {"x": 3, "at": None}}, {"s": None},
    ]  # fmt: skip


def of_changed_type(planned: pa.DataType, given: pa.Array) -> Reshaped:
    """Reshape a column whose type differs from that of a batch without rows."""

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        column = given if batch.num_rows else pa.array([], planned)
        return pa.RecordBatch.from_arrays([column], ["x"])

    return reshaped(batch(len(given)), function)


def encoded(values: list[Any], arrow: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, arrow).dictionary_encode()


def lists(values: pa.Array) -> pa.Array:
    """A list of each value."""
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


FLOATS = pa.list_(pa.float32())
NAMED = pa.map_(pa.string(), pa.float64())
HUGE = "1e+300 is outside the range of a float"
NOT_A_DATE = "2026-01-31 12:00:00.000000 is more than a date: cast the column"


@each(
    ("planned", "given", "message"),
    [
        (pa.float32(), pa.array([1.5, 1e300]), HUGE),
        (pa.float32(), encoded([1.5, 1e300]), HUGE),
        (pa.float32(), pc.run_end_encode(pa.array([1.5, -1e300])), "-1e+300 is outside the"),
        (pa.float32(), pa.array([Decimal(2), Decimal("1e50")]), "1e+50 is outside the range"),
        (pa.float32(), pa.array(["1.5", "1e300"]), HUGE),
        (FLOATS, pa.array([[0.5, math.inf], [1.0, 1e300]]), HUGE),
        (FLOATS, pa.array([[0.5], [1e300]], pa.large_list(pa.float64())), HUGE),
        (FLOATS, pa.array([[0.5], [1e300]], pa.list_(pa.float64(), 1)), HUGE),
        (FLOATS, lists(encoded([0.5, 1e300])), HUGE),
        (pa.list_(FLOATS), pa.array([[[0.5], None], [[], [1e300]]]), HUGE),
        (
            pa.map_(pa.string(), pa.float32()),
            pa.array([[("a", 0.5)], [("b", 1.0), ("c", 1e300)]], NAMED),
            HUGE,
        ),
        (pa.date32(), pa.array([None, NOON], pa.timestamp("us")), NOT_A_DATE),
        (pa.date32(), encoded([MIDNIGHT, NOON]), NOT_A_DATE),
        (pa.list_(pa.date32()), lists(pa.array([MIDNIGHT, NOON])), NOT_A_DATE),
        (pa.date32(), pa.array([0, 1], pa.timestamp("ns")), "00:00:00.000000001 is more than a d"),
        (pa.date32(), pa.array([0, -(2**62)], pa.timestamp("s")), "is more than a date"),
        (
            pa.date32(),
            pa.array([None, MIDNIGHT - EAST.utcoffset(None)], pa.timestamp("us", "+02:00")),
            "2026-01-31 00:00:00.000000+0200 is more than a date",
        ),
        (pa.time64("ns"), pa.array([None, NOON]), "is more than a time of day: cast the column"),
        (pa.int32(), pa.array([1.0, 1.5]), "was truncated"),
        (pa.int32(), encoded([1.0, 1.5]), "was truncated"),
        (pa.list_(pa.int32()), pa.array([[1.0], [1.5]]), "was truncated"),
        (pa.list_(pa.float64()), pa.array([[1], [2**60 + 1]]), "not in range"),
    ],
)  # fmt: skip
def test_a_column_of_another_type_than_planned_is_checked_as_strictly(
    planned: pa.DataType, given: pa.Array, message: str
) -> None:
    found = of_changed_type(planned, given)

    assert (
        rows_of(found) == rows_of(of_changed_type(planned, given[:1])) and len(rows_of(found)) == 1
    )
    assert list(found.errors) == [1] and message in found.errors[1]


def test_a_timestamp_at_midnight_becomes_a_date_and_encodings_are_converted() -> None:
    def given(planned: pa.DataType, column: pa.Array) -> list[Any]:
        found = of_changed_type(planned, column)
        assert found.errors == {}
        return [row["x"] for row in rows_of(found)]

    assert given(pa.date32(), pa.array([MIDNIGHT, None])) == [MIDNIGHT.date(), None]
    assert given(pa.date32(), encoded([MIDNIGHT], pa.timestamp("ns", "UTC"))) == [MIDNIGHT.date()]
    assert given(FLOATS, lists(encoded([0.5, math.inf]))) == [[0.5], [math.inf]]
    # A null list may have hidden values, and a slice has neighbours.
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array([1e300, 1e300, 0.5]),
        mask=pa.array([False, True, False]),
    )  # fmt: skip
    assert given(FLOATS, hidden[1:]) == [None, [0.5]]

    row = each_row(columns={"x": pa.date32()})(lambda row: {"x": utc})
    utc = MIDNIGHT.replace(tzinfo=datetime.UTC)
    assert rows_of(reshaped(batch(1), row)) == [{"x": MIDNIGHT.date()}]


def test_views_of_lists_are_refused() -> None:
    found = of_changed_type(FLOATS, pa.array([None, [1.0]], pa.list_view(pa.float64())))
    assert list(found.errors) == [0, 1]
    assert "a list_view<item: double> is not a list<item: float>: cast it" in found.errors[1]


def test_the_caller_is_called_back_during_a_batch() -> None:
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1

    chosen = transforms(lambda batch: batch)
    Reshaper(chosen, planned_results(NAMES, TYPES, chosen)).run(batch(200), tick)

    assert ticks == 2  # slices of 64 and 136 rows


def test_two_identity_functions_of_rows_change_nothing() -> None:
    @each_row
    def same(row: dict[str, Any]) -> dict[str, Any]:
        return row

    kinds = [parse_type(text) for text in ("map<text, int>", "map<int, text>", "time", "uuid")]
    names = ["tags", "numbers", "at", "key"]
    values = [
        [[("a", 1), ("b", 2)], None],
        [[], [(1, "x")]],
        [36_000_000_000_001, 1000],
        [KEY.bytes, None],
    ]
    given = pa.RecordBatch.from_arrays(
        [pa.array(v, kind.arrow()) for v, kind in zip(values, kinds, strict=True)], names
    )
    for functions in ([same], [same, same], [same, lambda batch: batch]):
        chosen = transforms(*functions)
        found = Reshaper(chosen, planned_results(names, kinds, chosen)).run(given)
        assert found == Reshaped([given], 0, {})


def test_times_finer_than_a_timestamp_reject_their_row() -> None:
    def finer(batch: pa.RecordBatch) -> pa.RecordBatch:
        microseconds = pc.add(
            pc.cast(pc.cast(batch.column("at"), pa.timestamp("us", "UTC")), "int64"),
            pc.cast(batch.column("id"), "int64"),
        )
        return pa.RecordBatch.from_pydict({"us": microseconds.cast(pa.timestamp("us", "UTC"))})

    found = reshaped(batch(2), finer)

    assert len(rows_of(found)) == 1
    assert list(found.errors) == [1] and "lose data" in found.errors[1]


def test_other_columns_than_planned_end_the_job() -> None:
    def inconsistent(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["id"] if batch.num_rows else ["id", "note"])

    with pytest.raises(TransformError, match="gave the columns id, and id, note for a batch"):
        reshaped(batch(), inconsistent)


def test_types_are_stored_with_the_job_as_json() -> None:
    results = planned_results(NAMES, TYPES, transforms(lambda batch: batch))
    assert tuple((n, CqlType.from_json(kind.to_json())) for n, kind in results) == results
