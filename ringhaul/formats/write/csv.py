"""CSV by RFC 4180: columns as text, quoted where they must be, glued row by row at once.

pyarrow.csv.write_csv quotes every string or none, spells timestamps its own way, and takes 1.3 us
for a row that takes 0.3 us here, most of it in the doubles and the timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.spell import text_of
from ringhaul.cql.types import CqlType
from ringhaul.formats.write.options import OutputFormat
from ringhaul.formats.write.rows import rows_of

#: Types whose text may hold any character.
_TEXTS = ("ascii", "text", "varchar")
#: What the texts of the other scalar types are made of.
_VALUE = re.compile(r"[-+.:0-9A-Za-z]*")
#: Such texts that are no value of any type.
_NO_VALUES = ("", "NULL", "Null", "null", "None", "none", "NA", "NIL", "nil")
#: A byte order mark at the very beginning of a file is dropped by readers, unless it is quoted.
_BOM = "\ufeff"
#: What may need quotes at the edges of a value, and nowhere else.
_EDGES = (b" ", b"\t", _BOM.encode())


class CsvLines:
    """One record a line. LF ends a line, as files on Unix have it.

    A field is quoted if it holds the delimiter, the quote, CR or LF, begins or ends with a blank,
    begins with a byte order mark, is empty without being null, or reads as the text for null.
    """

    def __init__(self, fmt: OutputFormat, names: Sequence[str], types: Sequence[CqlType]) -> None:
        assert fmt.delimiter is not None and fmt.quote is not None and fmt.null is not None
        self._delimiter, self._quote, self._null = fmt.delimiter, fmt.quote, fmt.null
        self._types = list(types)
        special = re.escape(fmt.delimiter) + re.escape(fmt.quote)
        self._needs_quotes = rf"[{special}\r\n]|^$|^[ \t]|[ \t]$|^{_BOM}"
        self._special_bytes = [byte.encode() for byte in (fmt.delimiter, fmt.quote, "\r", "\n")]
        self._harmless = not any(map(_VALUE.fullmatch, (fmt.delimiter, fmt.quote))) and (
            fmt.null in _NO_VALUES or not _VALUE.fullmatch(fmt.null)
        )
        fields = [self._quoted(pa.array([name], pa.string())) for name in names]
        self.head = self._row_texts(fields)[0].as_py().encode() if fmt.header else b""

    def lines(self, batch: pa.RecordBatch) -> pa.StringArray:
        return self._row_texts(
            [
                self._field(cql_type, column)
                for cql_type, column in zip(self._types, batch.columns, strict=True)
            ]
        )

    def _row_texts(self, fields: list[pa.StringArray]) -> pa.StringArray:
        before = ["", *[self._delimiter] * (len(fields) - 1)]
        return rows_of(fields, before, "\n", self._null)

    def _field(self, cql_type: CqlType, column: pa.Array) -> pa.StringArray:
        text = text_of(cql_type, column)
        plain = cql_type.scalar and cql_type.name not in _TEXTS and self._harmless
        return text if plain else self._quoted(text)

    def _quoted(self, text: pa.StringArray) -> pa.StringArray:
        """`text` with quotes around the values that need them."""
        mask = None
        if self._may_need_quotes(text):
            mask = pc.match_substring_regex(text, self._needs_quotes)
        if self._null:
            is_null = pc.equal(text, self._null)
            mask = is_null if mask is None else pc.or_(mask, is_null)
        if mask is None or not pc.any(mask).as_py():
            return text
        inner = pc.replace_substring(text, self._quote, self._quote * 2)
        return pc.if_else(
            mask, pc.binary_join_element_wise(self._quote, inner, self._quote, ""), text
        )

    def _may_need_quotes(self, text: pa.StringArray) -> bool:
        """A look at all bytes at once, in a tenth of the time of a look at each value."""
        _, offsets_buffer, data_buffer = text.buffers()
        if not len(text):
            return False
        if data_buffer is None:
            return True
        offsets = np.frombuffer(offsets_buffer, np.int32)
        offsets = offsets[text.offset : text.offset + len(text) + 1]
        firsts, ends = offsets[:-1], offsets[1:]
        empty = firsts == ends
        if empty.any():
            if not text.null_count:
                return True
            if (empty & text.is_valid().to_numpy(zero_copy_only=False)).any():
                return True
        data = data_buffer.slice(offsets[0], offsets[-1] - offsets[0]).to_pybytes()
        if any(byte in data for byte in self._special_bytes):
            return True
        if not any(edge in data for edge in _EDGES):
            return False
        full = ~empty
        shown = np.frombuffer(data, np.uint8)
        first, last = shown[(firsts - offsets[0])[full]], shown[(ends - offsets[0])[full] - 1]
        return bool(np.any((first <= 0x20) | (last <= 0x20) | (first == _EDGES[-1][0])))
