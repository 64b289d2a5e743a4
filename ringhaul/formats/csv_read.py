"""Read a block of records into columns of text, with pyarrow's CSV parser where it has quotes.

The whole block is parsed at once and every field stays bytes: conversion comes later, by our own
table, so that one bad value costs one record. Row i of the result must be record `records[i]` of
the block; the count is checked each time. Quirks of the parser that this module works around:

- it strips a byte order mark at the start of its input, which here is the middle of a file;
- at the end of its input, without a line end, it takes an empty last field for a quoted one if
  the field before it was quoted;
- it hands rows with a wrong number of fields to a Python handler, but decodes their text as
  UTF-8 first and gives up on the whole block if it cannot;
- it does not support comments;
- it compares null texts with decoded values instead of fields as written in the file: a dialect
  with an escape character is read by `csv_escaped.py`, and so is all else that it cannot read.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ringhaul.errors import RinghaulError
from ringhaul.formats.csv_escaped import EscapedColumns, escaped_columns
from ringhaul.formats.csv_plain import plain_columns
from ringhaul.formats.csv_reasons import count_reason, nul_reason
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.pieces import BOM
from ringhaul.formats.records import Offsets
from ringhaul.formats.split import Block


class FieldReject(NamedTuple):
    """A record that cannot be loaded, and why."""

    #: Index of the record in its block.
    record: int
    #: Name of the field at fault; None: the record as a whole.
    column: str | None
    reason: str
    #: The field's text in UTF-8; None if no single field is at fault.
    value: bytes | None
    stage: str = "parse"


class TextBlock(NamedTuple):
    """The fields of a block's good records."""

    #: One per wanted field: UTF-8 text (not checked), null where the field reads as null.
    columns: list[pa.BinaryArray]
    #: Index in the block of each row's record; ascending.
    records: npt.NDArray[np.int64]
    rejects: list[FieldReject]


@dataclass(frozen=True)
class _Text:
    """The records of a block, without comments, as UTF-8 that may hold undecodable bytes."""

    data: bytes
    #: The text before it was decoded from `encoding`; None: `data` was not decoded.
    raw: bytes | None
    encoding: str
    #: Offsets of the records, into `raw` if it is set, else into `data`.
    raw_starts: Offsets
    raw_ends: Offsets

    @cached_property
    def spans(self) -> tuple[Offsets, Offsets]:
        """Offsets in `data` where the records start and end.

        Nearly free: computed without a scan, which would be costly for a long record.
        """
        if self.raw is None:
            return self.raw_starts, self.raw_ends
        return decoded_offsets(self.raw, self.encoding, self.raw_starts, self.raw_ends)

    def joined(self, chosen: Iterable[int]) -> bytes:
        """Return the text of the records `chosen`, which are in ascending order."""
        starts, ends = (offsets.tolist() for offsets in self.spans)
        return b"\n".join(self.data[starts[record] : ends[record]] for record in chosen)


class TextRows(NamedTuple):
    """The fields of records that are good so far, as in `TextBlock`."""

    columns: list[pa.BinaryArray]
    records: npt.NDArray[np.int64]


def read_block(
    block: Block,
    dialect: CsvDialect,
    field_names: Sequence[str],
    wanted: Sequence[str],
    kept: Collection[str] = (),
) -> TextBlock:
    """Read the fields `wanted` of a block whose records have the fields `field_names`.

    `kept`: fields in which the empty text is a value, even if it is a null text of the dialect.

    A record with another number of fields is a reject unless the dialect allows it, and so is a
    record with a NUL byte in a wanted field.
    """
    if block.defect is not None:
        raise ValueError("a defective record has no fields")
    places = dict(zip(reversed(field_names), range(len(field_names) - 1, -1, -1), strict=True))
    indexes = [places[name] for name in wanted]
    data, rejects = block.data, list[FieldReject]()
    records = np.arange(block.records_count, dtype=np.int64)
    if kept and set(wanted) <= set(kept):
        dialect, kept = without_empty(dialect), ()
    own = [without_empty(dialect) if name in kept else dialect for name in wanted]
    nulls_of = [one.null_strings for one in own]
    plain = plain_columns(block, dialect, len(field_names), indexes, nulls_of)
    nuls: Sequence[npt.NDArray[np.bool_]] | None = None
    if plain is not None:
        rows = TextRows(plain, records)
    elif dialect.beyond_pyarrow or kept:  # to pyarrow all columns have the same null texts
        data, escaped = _escaped(block, dialect, len(field_names), indexes, own)
        rows, nuls = TextRows(escaped.columns, escaped.records), escaped.nuls
        bad = np.setdiff1d(records, escaped.records, assume_unique=True).tolist()
        counts = [int(escaped.counts[record]) for record in bad]
        unnamed = _lacks_a_name(block, counts, len(field_names), dialect)
        rejects = [
            FieldReject(record, None, count_reason(count, len(field_names), unnamed=unnamed), None)
            for record, count in zip(bad, counts, strict=True)
        ]
    else:
        text = _utf8_text(block, dialect)
        data = text.data
        columns, irregular = _parse(text, dialect, len(field_names), indexes)
        rows = TextRows(columns, np.delete(records, [record for record, _ in irregular]))
        if irregular:
            counts = [count for _, count in irregular]
            unnamed = _lacks_a_name(block, counts, len(field_names), dialect)
            rows, rejects = _regular(
                rows, irregular, text, dialect, len(field_names), indexes, unnamed=unnamed
            )
    if any(len(column) != len(rows.records) for column in rows.columns) or len(rows.records) + len(
        rejects
    ) != len(block.starts):
        raise RinghaulError(
            f"byte {block.position.offset_bytes}: {len(block.starts)} records were found where the "
            f"parser sees {len(rows.columns[0]) + len(rejects)}; this is a bug in ringhaul"
        )
    if not dialect.allow_nul and b"\0" in data:
        if nuls is None:
            nuls = [holds_nul(column) for column in rows.columns]
        rows, nul_rejects = without_nul(rows, nuls, wanted)
        rejects = sorted(rejects + nul_rejects, key=lambda reject: reject.record)
    return TextBlock(rows.columns, rows.records, rejects)


@lru_cache(maxsize=16)
def without_empty(dialect: CsvDialect) -> CsvDialect:
    """Return the dialect in which an empty field is not null."""
    return replace(dialect, null_strings=tuple(text for text in dialect.null_strings if text))


def parse_fields(text: bytes, dialect: CsvDialect) -> list[bytes]:
    """Return the fields of the single record `text`, which is UTF-8 or nearly so."""
    no_nulls = replace(dialect, null_strings=(), empty_word=None, fill_empty=None, fill_quoted=None)
    whole = np.zeros(1, np.int64), np.array([len(text)], np.int64)
    if no_nulls.beyond_pyarrow:
        allowing = replace(no_nulls, allow_extra_fields=True)
        fields_count = int(escaped_columns(text, *whole, allowing, 1, [0], [no_nulls]).counts[0])
        own = [no_nulls] * fields_count
        found = escaped_columns(text, *whole, no_nulls, fields_count, range(fields_count), own)
        return [column[0].as_py() for column in found.columns]
    record = _Text(text, None, "", *whole)
    _, irregular = _parse(record, no_nulls, 1, [0])
    fields_count = irregular[0][1] if irregular else 1
    columns, _ = _parse(record, no_nulls, fields_count, range(fields_count))
    return [column[0].as_py() for column in columns]


def _escaped(
    block: Block,
    dialect: CsvDialect,
    fields_count: int,
    indexes: Sequence[int],
    own: Sequence[CsvDialect],
) -> tuple[bytes, EscapedColumns]:
    """Return the block in UTF-8, and its fields."""
    text, starts, ends = block.data, block.starts, block.ends
    if dialect.decoding == "block":
        starts, ends = decoded_offsets(text, dialect.encoding, starts, ends)
        text = decode_bytes(text, dialect.encoding)
    return text, escaped_columns(text, starts, ends, dialect, fields_count, indexes, own)


def _utf8_text(block: Block, dialect: CsvDialect) -> _Text:
    text, starts, ends = block.data, block.starts, block.ends
    begin = int(starts[0])
    if dialect.comment is not None and dialect.comment.encode() in text:
        # Only a gap of more than one line end can hold a comment.
        gaps = np.flatnonzero(starts[1:] - ends[:-1] > 2) + 1
        firsts = starts[np.concatenate(([0], gaps))]
        lasts = ends[np.concatenate((gaps - 1, [len(ends) - 1]))]
        runs = zip(firsts.tolist(), lasts.tolist(), strict=True)
        text = b"\n".join(text[first:last] for first, last in runs)
        moved = firsts - np.concatenate(([0], np.cumsum(lasts - firsts + 1)[:-1]))
        moved = np.repeat(moved, np.diff(np.concatenate(([0], gaps, [len(starts)]))))
        starts, ends = starts - moved, ends - moved
    elif begin > 0:
        text = text[begin:]
        starts, ends = starts - begin, ends - begin
    if dialect.decoding == "block":
        decoded = decode_bytes(text, dialect.encoding)
        return _Text(decoded, text, dialect.encoding, starts, ends)
    return _Text(text, None, "", starts, ends)


_UNDECODABLE = re.compile("[\udc80-\udcff]")


def decode_bytes(text: bytes, encoding: str) -> bytes:
    """Return `text` in UTF-8; a byte that is undefined in `encoding` becomes 0xFF.

    0xFF occurs nowhere in UTF-8, so the value that holds it is rejected when it is converted,
    and the other values and records are not.
    """
    decoded = text.decode(encoding, "surrogateescape")
    try:
        return decoded.encode()
    except UnicodeEncodeError:
        return _UNDECODABLE.sub("\udcff", decoded).encode("utf-8", "surrogateescape")


def decoded_offsets(
    text: bytes, encoding: str, starts: Offsets, ends: Offsets
) -> tuple[Offsets, Offsets]:
    """Return where the records of `text`, none empty, start and end in `decode_bytes(text)`."""
    if text.isascii() or not len(starts):
        return starts, ends
    edges = np.column_stack((starts, ends)).reshape(-1)
    sizes = _utf8_sizes(encoding)[np.frombuffer(text, np.uint8, int(edges[-1]))]
    between = np.add.reduceat(sizes, np.concatenate(([0], edges[:-1])), dtype=np.int64)
    if not edges[0]:
        between[0] = 0  # reduceat returns the first element of an empty span
    moved = np.cumsum(between)
    return moved[::2], moved[1::2]


@lru_cache(maxsize=8)
def _utf8_sizes(encoding: str) -> npt.NDArray[np.uint8]:
    """Return how many UTF-8 bytes each byte of `encoding` becomes."""
    return np.array([len(decode_bytes(bytes([byte]), encoding)) for byte in range(256)], np.uint8)


def _parse_options(text: bytes, dialect: CsvDialect) -> pyarrow.csv.ParseOptions:
    hides_line_ends = dialect.quote is not None and dialect.quote.encode() in text
    return pyarrow.csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote if dialect.quote is not None else False,
        double_quote=True,
        escape_char=False,
        newlines_in_values=hides_line_ends,
        ignore_empty_lines=True,
    )


def _guarded(text: bytes) -> bytes:
    """Guard `text` against two quirks of the parser: a leading mark, a missing last line end."""
    if not text.endswith((b"\n", b"\r")):
        text += b"\n"
    return b"\n" + text if text.startswith(BOM) else text


def _parse(
    text: _Text, dialect: CsvDialect, fields_count: int, indexes: Sequence[int]
) -> tuple[list[pa.BinaryArray], list[tuple[int, int]]]:
    """Return columns of the rows with `fields_count` fields; (record, field count) of the rest."""
    data = text.data
    if _is_utf8(data):
        return _read_csv(data, dialect, fields_count, indexes)
    # Rows keep their fields when every byte beyond ASCII is replaced by one ordinary character.
    specials = (dialect.delimiter, dialect.quote)
    ordinary = next(character for character in "xyz?" if character not in specials)
    masked = data.translate(bytes(range(128)) + ordinary.encode() * 128)
    _, irregular = _read_csv(masked, dialect, fields_count, indexes[:1])
    if irregular:
        count = len(text.raw_starts)
        data = text.joined(np.delete(np.arange(count), [record for record, _ in irregular]))
    columns, _ = _read_csv(data, dialect, fields_count, indexes)
    return columns, irregular


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    # Arrow checks at memory speed and allocates nothing, which `bytes.decode` does not.
    offsets = pa.py_buffer(np.array([0, len(text)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _read_csv(
    text: bytes, dialect: CsvDialect, fields_count: int, indexes: Sequence[int]
) -> tuple[list[pa.BinaryArray], list[tuple[int, int]]]:
    if not text or not indexes:
        return [pa.array([], pa.binary()) for _ in indexes], []
    irregular: list[tuple[int, int]] = []

    def on_irregular(row: pyarrow.csv.InvalidRow) -> str:
        irregular.append((row.number - 1, row.actual_columns))
        return "skip"

    names = [str(index) for index in range(fields_count)]
    parse_options = _parse_options(text, dialect)
    parse_options.invalid_row_handler = on_irregular
    guarded = _guarded(text)
    table = pyarrow.csv.read_csv(
        pa.BufferReader(guarded),
        # One block on this thread: only then does the parser number the rows.
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, block_size=len(guarded) + 1, column_names=names
        ),
        parse_options=parse_options,
        convert_options=pyarrow.csv.ConvertOptions(
            check_utf8=False,
            column_types={names[index]: pa.binary() for index in indexes},
            include_columns=[names[index] for index in indexes],
            null_values=list(dialect.null_strings),
            strings_can_be_null=bool(dialect.null_strings),
            quoted_strings_can_be_null=dialect.null_quoted,
        ),
    )
    return [_one_array(column) for column in table.columns], irregular


def _one_array(column: pa.ChunkedArray) -> pa.BinaryArray:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays([*column.chunks, pa.array([], pa.binary())])


def _regular(
    rows: TextRows,
    irregular: list[tuple[int, int]],
    text: _Text,
    dialect: CsvDialect,
    fields_count: int,
    indexes: Sequence[int],
    *,
    unnamed: bool,
) -> tuple[TextRows, list[FieldReject]]:
    """Add the records with another number of fields where allowed; reject the rest."""
    rejects: list[FieldReject] = []
    allowed: dict[int, list[int]] = defaultdict(list)
    for record, count in irregular:
        if dialect.allow_extra_fields if count > fields_count else dialect.allow_missing_fields:
            allowed[count].append(record)
        else:
            reason = count_reason(count, fields_count, unnamed=unnamed)
            rejects.append(FieldReject(record, None, reason, None))
    if not allowed:
        return rows, rejects
    parts = [rows]
    for count, records in allowed.items():
        present = [index for index in indexes if index < count]
        columns, _ = _read_csv(text.joined(records), dialect, count, present)
        by_index = dict(zip(present, columns, strict=True))
        missing = pa.nulls(len(records), pa.binary())
        parts.append(
            TextRows(
                [by_index.get(index, missing) for index in indexes], np.array(records, np.int64)
            )
        )
    every_record = np.concatenate([part.records for part in parts])
    order = np.argsort(every_record)
    columns = [
        pa.concat_arrays([part.columns[i] for part in parts]).take(pa.array(order))
        for i in range(len(indexes))
    ]
    return TextRows(columns, every_record[order]), rejects


def _lacks_a_name(
    block: Block, counts: Sequence[int], fields_count: int, dialect: CsvDialect
) -> bool:
    """Return whether the first field may have no name: all records, at least two, have one field
    too many, by `counts` (of irregular records only), and not all end in a delimiter."""
    if not 1 < len(counts) == block.records_count or {*counts} != {fields_count + 1}:
        return False
    delimiter = dialect.raw_delimiter
    ends = block.ends.tolist()
    return not all(block.data[end - len(delimiter) : end] == delimiter for end in ends)


def holds_nul(column: pa.BinaryArray) -> npt.NDArray[np.bool_]:
    """Return which values have a NUL byte."""
    holds: npt.NDArray[np.bool_] = pc.fill_null(pc.match_substring(column, b"\0"), False).to_numpy(
        zero_copy_only=False
    )
    return holds


def without_nul(
    rows: TextRows,
    nuls: Sequence[npt.NDArray[np.bool_]],
    wanted: Sequence[str],
) -> tuple[TextRows, list[FieldReject]]:
    """Return the rows without a NUL byte in a wanted field, and rejects for the others.

    `nuls`: by wanted field, the rows that have a NUL byte.
    """
    rejects: dict[int, FieldReject] = {}
    for name, column, holds_nul in zip(wanted, rows.columns, nuls, strict=True):
        for row in np.flatnonzero(holds_nul).tolist():
            value = column[row].as_py()
            reason = nul_reason(value)
            rejects.setdefault(row, FieldReject(int(rows.records[row]), name, reason, value))
    good = np.delete(np.arange(len(rows.records)), list(rejects))
    columns = [column.take(pa.array(good)) for column in rows.columns]
    return TextRows(columns, rows.records[good]), list(rejects.values())
