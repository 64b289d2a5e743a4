"""JSON: one object per row, by column name; on lines, or in one array for each file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.spell import json_strings
from ringhaul.cql.spell.formats import Speller
from ringhaul.cql.types import CqlType
from ringhaul.formats.write.options import OutputFormat
from ringhaul.formats.write.rows import rows_of


class JsonLines:
    """Objects on lines, without blanks; or the elements of an array, each on a line (`array`) or
    with a line for each member (`pretty`)."""

    def __init__(self, fmt: OutputFormat, names: Sequence[str], types: Sequence[CqlType]) -> None:
        keys = [json_strings(pa.array([name], pa.string()))[0].as_py() for name in names]
        pretty = fmt.json_layout == "pretty"
        colon, comma = (": ", ",\n    ") if pretty else (":", ",")
        self._members = [f"{comma}{key}{colon}" for key in keys]
        in_array = fmt.json_layout is not None
        joint = ",\n" if in_array else ""
        self._opening = f"{joint}  {{\n    " if pretty else f"{joint}{{"
        self._closing = "\n  }" if pretty else "}" if in_array else "}\n"
        self._comma_size = len(comma)
        self._nulls = fmt.json_nulls is not False
        self._types = list(types)
        self._speller = Speller(fmt.values)
        head, tail = (b"[\n", b"\n]\n") if in_array else (b"", b"")
        self.head, self.tail = bytes(fmt.encode(head, first=True)), bytes(fmt.encode(tail))
        self.joint_bytes = len(joint)

    def lines(self, batch: pa.RecordBatch) -> pa.StringArray:
        fields = [
            self._speller.json_of(cql_type, column)
            for cql_type, column in zip(self._types, batch.columns, strict=True)
        ]
        if self._nulls:
            first, *others = self._members
            before = [self._opening + first[self._comma_size :], *others]
            return rows_of(fields, before, self._closing, "null")
        members = [
            pc.binary_join_element_wise(before, field, "")  # null where the field is
            for before, field in zip(self._members, fields, strict=True)
        ]
        joined = rows_of(members, [""] * len(members), "", "")
        inner = pc.utf8_slice_codeunits(joined, self._comma_size)
        return pc.binary_join_element_wise(self._opening, inner, self._closing, "")
