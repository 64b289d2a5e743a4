"""Bounds and edge cases of cells that the property tests do not reach."""

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql import cells as cells_module
from ringhaul.cql.cells import Cells, bigint_cells, join_rows, routing_keys


def test_rows_of_numbers_alone_need_no_glue() -> None:
    rows = join_rows([bigint_cells(np.array([1, 1])), bigint_cells(np.array([2, 2]))])

    one, two = b"\0\0\0\x08" + b"\0" * 7 + b"\1", b"\0\0\0\x08" + b"\0" * 7 + b"\2"
    assert rows.to_pylist() == [one + two, one + two]


def test_rows_above_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    column = Cells.variable(pa.array([b"x" * 60, b"y" * 60], pa.binary()))
    monkeypatch.setattr(cells_module, "JOINED_BYTES_MAX", 127)

    with pytest.raises(ValueError, match="2 rows take 128 bytes, more than 127"):
        join_rows([column])


def test_arrow_nulls_are_missing_values_too() -> None:
    column = Cells.variable(pa.array([b"a", None, b"c"], pa.binary()), null_length=-2)

    assert column.lengths.tolist() == [1, -2, 1]
    assert column.values.to_pylist() == [b"a", b"", b"c"]


def test_an_oversized_key_component_still_routes_somewhere() -> None:
    keys = routing_keys(
        [Cells.variable(pa.array([b"k" * 70_000], pa.binary())), bigint_cells(np.array([1]))]
    )

    assert len(keys) == 1 and keys[0].as_py()[2:70_002] == b"k" * 70_000


def test_filtering_everything_away() -> None:
    column = Cells.fixed(np.arange(3, dtype=">i4"))

    assert len(column.filter(np.zeros(3, bool))) == 0
    assert join_rows([column.filter(np.zeros(3, bool))]).to_pylist() == []
