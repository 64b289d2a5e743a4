"""The leaf columns of a row group that are read, as the footer describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow.parquet as pq

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
#: Bytes of a value in Arrow, if it is wider than in the file: a decimal, and a date or time that
#: its writer had in 64 bits.
_DECIMAL_BYTES = 32
_WIDTH_MIN = 8


class Leaf(NamedTuple):
    """A leaf column of a row group: values of one physical type."""

    path: str
    place: int  #: of its column among the wanted ones
    physical: str
    flat: bool  #: not inside a list
    width: int  #: bytes of each value in Arrow; 0: they vary
    values_count: int  #: by the footer
    plain_bytes: int  #: by the footer: bytes of its pages, unpacked
    delta: bool  #: some pages hold differences, which cannot be read as indices
    codec: str
    start: int  #: offset of its bytes in the file
    stored_bytes: int


def leaves_of(
    schema: pq.ParquetSchema, about: pq.RowGroupMetaData, names: Sequence[str]
) -> list[Leaf]:
    """Return the leaves of the columns `names` in a row group, in the order of the file."""
    found = []
    for number in range(about.num_columns):
        chunk = about.column(number)
        path = str(chunk.path_in_schema)
        place = _place(path, names)
        if place is None:
            continue
        column = schema.column(number)
        physical = str(chunk.physical_type)
        width = int(column.length) if physical == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(physical)
        if width:
            decimal = physical != "INT96" and column.logical_type.type == "DECIMAL"
            width = max(width, _DECIMAL_BYTES if decimal else _WIDTH_MIN)
        data = int(chunk.data_page_offset)
        # Some writers write 0 if there is no dictionary.
        dictionary = int(chunk.dictionary_page_offset or data)
        found.append(
            Leaf(
                path=path,
                place=place,
                physical=physical,
                flat=column.max_repetition_level == 0,
                width=width or 0,
                values_count=int(chunk.num_values),
                plain_bytes=max(0, int(chunk.total_uncompressed_size)),
                delta=any("DELTA" in encoding for encoding in chunk.encodings),
                codec=str(chunk.compression),
                start=min(data, dictionary),
                stored_bytes=int(chunk.total_compressed_size),
            )
        )
    return found


def place_of(chunk: pq.ColumnChunkMetaData, names: Sequence[str]) -> int | None:
    """Return which of the columns `names` a chunk belongs to; None: to none."""
    return _place(str(chunk.path_in_schema), names)


def _place(path: str, names: Sequence[str]) -> int | None:
    path += "."
    for place, name in enumerate(names):
        if path.startswith(name) and path[len(name)] == ".":
            return place
    return None
