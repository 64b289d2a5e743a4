"""JSON Lines: one object per row, by column name, nulls included."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ringhaul.cql.spell import json_of, json_strings
from ringhaul.cql.types import CqlType
from ringhaul.formats.write.rows import rows_of


class JsonLines:
    """One object a line, without blanks."""

    head = b""

    def __init__(self, names: Sequence[str], types: Sequence[CqlType]) -> None:
        keys = [json_strings(pa.array([name], pa.string()))[0].as_py() for name in names]
        # The text before each value: the key, and the comma after the previous value.
        self._before = [f"{',' if i else '{'}{key}:" for i, key in enumerate(keys)]
        self._types = list(types)

    def lines(self, batch: pa.RecordBatch) -> pa.StringArray:
        fields = [
            json_of(cql_type, column)
            for cql_type, column in zip(self._types, batch.columns, strict=True)
        ]
        return rows_of(fields, self._before, "}\n", "null")
