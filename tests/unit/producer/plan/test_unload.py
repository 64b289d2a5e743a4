"""What an unload knows about its rows in advance."""

from __future__ import annotations

import pytest

from producer.plan.unload import _refuse_blank_lines
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.output.job import Output
from ringhaul.query.select import parse_select


def table(*, static: bool) -> TableSchema:
    columns = {"id": "text", "day": "text", "seq": "int", "v": "text"}
    return TableSchema(
        keyspace="shop",
        table="events",
        columns=tuple(
            ColumnSchema(name=name, cql_type=kind, static=static and name == "v")
            for name, kind in columns.items()
        ),
        partition_key=("id",),
        clustering_key=("day", "seq"),
    )


@pytest.mark.parametrize(
    ("column", "static", "refused"),
    [
        ("id", True, False),
        ("day", False, False),  # an empty text is written as "", which is not a blank line
        ("seq AS number", False, False),
        ("day", True, True),  # null in a partition that has only static columns
        ("v", False, True),
        ("writetime(v)", False, True),
    ],
)
def test_a_column_that_always_has_a_value_makes_no_blank_lines(
    column: str, static: bool, refused: bool
) -> None:
    select = parse_select(f"SELECT {column} FROM shop.events", lambda *_: table(static=static))
    output = Output(url="/out", format=OutputFormat())
    if refused:
        with pytest.raises(UsageError, match="give --null NULL"):
            _refuse_blank_lines(select, output)
    else:
        _refuse_blank_lines(select, output)
