"""The statement that a verification reads a row with."""

from __future__ import annotations

import struct
from dataclasses import replace

import pyarrow as pa
import pytest

from ringhaul.cql.cells import UNSET_LENGTH, Cells
from ringhaul.statements.compare import shorter
from ringhaul.statements.verify import VerifyPlan
from tests.loads import load_source, table_schema

COLUMNS = {"id": "int", "at": "int", "s": "text", "t": "text", "v": "text"}
WHERE = 'FROM "shop"."orders" WHERE "id" = ? AND "at" = ?'


@pytest.mark.parametrize(
    ("fields", "static", "fetched"),
    [
        (("id", "at", "v"), ("s", "t"), '"v"'),
        (("id", "at", "s", "v"), ("s", "t"), '"s", "v"'),
        # The server refuses a condition on a clustering column if only static columns are selected.
        (("id", "at", "s", "t"), ("s", "t"), '"s", "t", "at"'),
        (("id", "at"), ("s", "t"), '"id"'),
        (("id", "at", "s"), (), '"s"'),
    ],
)
def test_selected_columns(fields: tuple[str, ...], static: tuple[str, ...], fetched: str) -> None:
    plain = table_schema(COLUMNS, ["id"], ["at"])
    columns = tuple(replace(one, static=one.name in static) for one in plain.columns)
    plan = VerifyPlan.of(replace(plain, columns=columns), load_source(fields))
    assert plan.statement == f"SELECT {fetched} {WHERE}"


def test_what_is_left_of_a_ttl() -> None:
    def seconds(*values: int | None) -> pa.BinaryArray:
        cells = [None if value is None else struct.pack(">i", value) for value in values]
        return pa.array(cells, pa.binary())

    expected = Cells.variable(seconds(100, 100, 100, 100, None, None))
    actual = seconds(99, 100, 101, None, None, 5)
    assert shorter(expected, actual).tolist() == [False, False, True, True, False, True]
    unset = Cells.variable(seconds(None), null_length=UNSET_LENGTH)
    assert shorter(unset, seconds(5)).tolist() == [False]
