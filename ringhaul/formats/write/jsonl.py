"""JSON Lines: an object a row, by column name, nulls included."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.spell import json_of, json_strings
from ringhaul.cql.types import CqlType


class JsonLines:
    """One object a line, without blanks."""

    head = b""

    def __init__(self, names: Sequence[str], types: Sequence[CqlType]) -> None:
        keys = [json_strings(pa.array([name], pa.string()))[0].as_py() for name in names]
        # What stands before a value: the key, and the comma after the value before it.
        self._before = [f"{',' if i else '{'}{key}:" for i, key in enumerate(keys)]
        self._types = list(types)

    def lines(self, batch: pa.RecordBatch) -> pa.StringArray:
        pieces: list[pa.StringArray | str] = []
        for before, cql_type, column in zip(self._before, self._types, batch.columns, strict=True):
            pieces += [before, json_of(cql_type, column)]
        return pc.binary_join_element_wise(
            *pieces, "}\n", "", null_handling="replace", null_replacement="null"
        )
