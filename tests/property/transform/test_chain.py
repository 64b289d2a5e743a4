"""Every record is accounted for, whether a function raises, drops or multiplies it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.transform import RECORD
from ringhaul.transform.chain import FIRST_RECORDS, Chain, Transform

#: Number of rows of a record; None: the function raises.
FATES = st.none() | st.integers(0, 4)


def function_of(column: str) -> Any:
    """Return each row as often as its column says, in an order that mixes the records."""

    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        fates = batch.column(column).to_pylist()
        if None in fates:
            raise ValueError("one of them")
        places = [place for time in range(4) for place, fate in enumerate(fates) if time < fate]
        return batch.take(pa.array(places, pa.int64()))

    return run


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(FATES, FATES), min_size=1, max_size=3 * FIRST_RECORDS), st.booleans())
def test_rows_and_errors_are_those_of_each_record_by_itself(
    fates: list[tuple[int | None, int | None]], drops_numbers: bool
) -> None:
    def last(batch: pa.RecordBatch) -> pa.RecordBatch:
        # As many rows as in the input: by position, or by record number.
        return batch.drop_columns([RECORD]) if drops_numbers else batch

    functions = [function_of("first"), function_of("second"), last]
    chain = Chain([Transform(f"t:{n}", function) for n, function in enumerate(functions)])
    batch = pa.RecordBatch.from_pydict(
        {
            "n": list(range(len(fates))),
            "first": pa.array([first for first, _ in fates], pa.int64()),
            "second": pa.array([second for _, second in fates], pa.int64()),
        }
    )

    rows: list[int] = []
    errors: dict[int, str] = {}
    end = 0
    for applied in chain.run(batch):
        assert applied.first == end
        end = applied.end
        errors |= applied.errors
        for piece in applied.pieces:
            # A row belongs to the record of its values.
            assert piece.columns["n"].to_pylist() == piece.rows.tolist()
            rows += piece.rows.tolist()

    assert end == len(fates)
    for n, (first, second) in enumerate(fates):
        if first is None:
            assert errors.pop(n) == "t:0: ValueError: one of them"
        elif first and second is None:
            assert errors.pop(n) == "t:1: ValueError: one of them"
        else:
            assert rows.count(n) == first * (second or 0)
    assert errors == {}
