"""Read the fields of a block with compiled kernels, where pyarrow's parser cannot: dialects with
an escape character, a delimiter of several bytes, blanks to drop around fields, or texts that
stand for empty fields or replace them.

A null text is compared with a field as written in the file, before escapes are decoded, as MySQL,
PostgreSQL and Hive do: with the null text `\\N` a field `\\N` is null, while `N` and `\\\\N` are
texts. Otherwise the grammar is as in `csv_read`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.formats.dialect import BLANKS, CsvDialect
from ringhaul.formats.escapes import QUOTED, meanings, reads_numbers
from ringhaul.formats.records import Offsets


class EscapedColumns(NamedTuple):
    """The fields of some records by column, and the number of fields of every record."""

    columns: list[pa.BinaryArray]
    #: By column: the rows with a NUL byte that is written literally, not as an escape.
    nuls: list[npt.NDArray[np.bool_]]
    #: Number of fields of every record, whether or not it becomes a row.
    counts: npt.NDArray[np.int64]
    #: Index of each row's record; ascending.
    records: npt.NDArray[np.int64]


def escaped_columns(
    data: bytes,
    starts: Offsets,
    ends: Offsets,
    dialect: CsvDialect,
    fields_count: int,
    indexes: Sequence[int],
    own: Sequence[CsvDialect],
) -> EscapedColumns:
    """Return the fields `indexes` of the records of `data`, null where they read as null.

    `data` is UTF-8 or nearly so. A record with another number of fields than `fields_count` becomes
    no row, unless the dialect allows it; its missing fields are null then. `own`: the dialect of
    each of `indexes`, which may differ in its null texts.
    """
    from ringhaul.formats.escape_kernels import find_fields

    view = np.frombuffer(data, np.uint8)
    shape = (len(starts), fields_count)
    begins, stops = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
    kinds, counts = np.zeros(shape, np.uint8), np.zeros(len(starts), np.int64)
    starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
    quote, escape = _characters(dialect)
    delimiter = np.frombuffer(dialect.delimiter.encode(), np.uint8)
    find_fields(
        *(view, starts, ends, int(delimiter[0]), delimiter[1:], quote, escape),
        *(dialect.escape_style != QUOTED, dialect.trim != "none", begins, stops, kinds, counts),
    )
    wrong = np.zeros(len(starts), bool)
    if not dialect.allow_extra_fields:
        wrong |= counts > fields_count
    if not dialect.allow_missing_fields:
        wrong |= counts < fields_count
    records = np.flatnonzero(~wrong)
    columns, nuls = [], []
    for index, spelt in zip(indexes, own, strict=True):
        column, nul = _column(
            *(view, begins[records, index], stops[records, index], kinds[records, index], spelt)
        )
        columns.append(column)
        nuls.append(nul)
    return EscapedColumns(columns, nuls, counts, records)


def _characters(dialect: CsvDialect) -> tuple[int, int]:
    quote, escape = (
        -1 if character is None else ord(character) for character in (dialect.quote, dialect.escape)
    )
    return quote, escape


def _column(
    view: npt.NDArray[np.uint8],
    begins: Offsets,
    stops: Offsets,
    kinds: npt.NDArray[np.uint8],
    dialect: CsvDialect,
) -> tuple[pa.BinaryArray, npt.NDArray[np.bool_]]:
    """Return one field of each row, decoded, and which rows have a literal NUL byte in it."""
    from ringhaul.formats.escape_kernels import decode_fields

    rows_count = len(begins)
    is_null = begins < 0
    for text in dialect.null_strings:
        is_null[_same(view, begins, stops, (kinds == 0) & (begins >= 0), text.encode())] = True
    if dialect.null_quoted:
        inner = _between_quotes(view, begins, stops, kinds == 1, dialect)
        for text in dialect.null_strings:
            is_null[_same(view, *inner, text.encode())] = True
    quoted_null = _quoted_null(dialect)
    if quoted_null is not None:
        is_null[_same(view, begins, stops, kinds == 1, quoted_null)] = True
    offsets, nuls = np.zeros(rows_count + 1, np.int32), np.zeros(rows_count, np.uint8)
    out = np.empty(int((stops - begins).sum()), np.uint8)
    quote, escape = _characters(dialect)
    style = dialect.escape_style
    size = decode_fields(
        *(view, begins, stops, kinds, is_null.view(np.uint8), quote, escape),
        *(style != QUOTED, meanings(style), reads_numbers(style), out, offsets, nuls),
    )
    valid = None
    if is_null.any():
        valid = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    column = pa.BinaryArray.from_buffers(
        pa.binary(), rows_count, [valid, pa.py_buffer(offsets), pa.py_buffer(out[:size])]
    )
    if dialect.trim == "quoted" and (kinds == 1).any():
        column = _stripped(column)
    if dialect.replaces_empty:
        column = _replaced(column, view, begins, stops, kinds, dialect)
    return column, nuls.view(np.bool_)


def _replaced(
    column: pa.BinaryArray,
    view: npt.NDArray[np.uint8],
    begins: Offsets,
    stops: Offsets,
    kinds: npt.NDArray[np.uint8],
    dialect: CsvDialect,
) -> pa.BinaryArray:
    """Return the column with empty fields replaced by the dialect's texts, and texts by empty
    fields. A missing field stays null."""
    word, unquoted, quoted = dialect.empty_word, dialect.fill_empty, dialect.fill_quoted
    bare = (kinds == 0) & (begins >= 0)
    found: list[tuple[npt.NDArray[np.bool_], str]] = []
    if word is not None:
        is_word = np.zeros(len(begins), np.bool_)
        is_word[_same(view, begins, stops, bare, word.encode())] = True
        found.append((is_word, ""))
    if unquoted is not None:
        found.append((bare & (stops == begins), unquoted))
    if quoted is not None:
        first, last, whole = _between_quotes(view, begins, stops, kinds == 1, dialect)
        found.append((whole & (first == last), quoted))
    for mask, text in found:
        if mask.any():
            column = pc.if_else(pa.array(mask), pa.scalar(text.encode(), pa.binary()), column)
    return column


def _stripped(column: pa.BinaryArray) -> pa.BinaryArray:
    """Return the texts without blanks around them."""
    rows_count, buffers = len(column), column.buffers()
    text = pa.StringArray.from_buffers(rows_count, buffers[1], buffers[2], buffers[0])
    text = pc.ascii_trim(text, characters=BLANKS)
    valid, offsets, data = text.buffers()
    return pa.BinaryArray.from_buffers(pa.binary(), rows_count, [valid, offsets, data])


def _between_quotes(
    view: npt.NDArray[np.uint8],
    begins: Offsets,
    stops: Offsets,
    quoted: npt.NDArray[np.bool_],
    dialect: CsvDialect,
) -> tuple[Offsets, Offsets, npt.NDArray[np.bool_]]:
    """Return what is between the quotes of the fields `quoted`, without blanks if the dialect drops
    them, and which fields have nothing after their quotes."""
    begins, stops = begins + 1, stops - 1
    whole = quoted & (stops >= begins)
    whole[whole] = view[stops[whole]] == ord(dialect.quote or "")
    if dialect.trim != "quoted":
        return begins, stops, whole
    blank = np.isin(np.arange(256), np.frombuffer(BLANKS.encode(), np.uint8))
    rows = np.flatnonzero(whole & (stops > begins))
    while len(rows := rows[blank[view[begins[rows]]]]):
        begins[rows] += 1
        rows = rows[begins[rows] < stops[rows]]
    rows = np.flatnonzero(whole & (stops > begins))
    while len(rows := rows[blank[view[stops[rows] - 1]]]):
        stops[rows] -= 1
        rows = rows[begins[rows] < stops[rows]]
    return begins, stops, whole


def _quoted_null(dialect: CsvDialect) -> bytes | None:
    r"""Return the quoted field that is null in spite of its quotes: MySQL reads `"\N"` so."""
    quote, escape = dialect.quote, dialect.escape
    if dialect.escape_style != "mysql" or quote is None or escape is None:
        return None
    null = f"{escape}N"
    return f"{quote}{null}{quote}".encode() if null in dialect.null_strings else None


def _same(
    view: npt.NDArray[np.uint8],
    begins: Offsets,
    stops: Offsets,
    among: npt.NDArray[np.bool_],
    text: bytes,
) -> npt.NDArray[np.intp]:
    """Return which of the fields `among` are written exactly as `text`."""
    same = np.flatnonzero(among & (stops - begins == len(text)))
    for i, byte in enumerate(text):
        same = same[view[begins[same] + i] == byte]
    return same
