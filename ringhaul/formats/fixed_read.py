"""Read a block of fixed-width records into columns of text.

A record is a line, and a field is the characters between two positions of it. A compiled kernel
finds where each field begins and ends in the block, without blanks around it. The block, seen as a
column of fields and gaps, then gives each field without a loop over records.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.formats.csv_plain import null_fields
from ringhaul.formats.csv_read import (
    FieldReject,
    TextBlock,
    TextRows,
    decode_bytes,
    decoded_offsets,
    holds_nul,
    without_empty,
    without_nul,
)
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_layout import FixedField
from ringhaul.formats.records import Offsets
from ringhaul.formats.split import Block
from ringhaul.option_names import input_option

_Edges = npt.NDArray[np.int32]
#: Bytes inside of characters.
_INSIDE = bytes(range(0x80, 0xC0))


def fixed_dialect(dialect: CsvDialect) -> CsvDialect:
    """Return `dialect` without quotes and escapes: a record is a line, whatever it holds."""
    return replace(dialect, quote=None, escape=None)


class _Text(NamedTuple):
    """The records of a block, in UTF-8."""

    data: bytes
    starts: Offsets
    ends: Offsets


class _Found(NamedTuple):
    """Where the fields of records are, as offsets into the text."""

    #: Field -> its begin and its end by turns, for each record.
    edges: Mapping[str, _Edges]
    lengths: Offsets  #: characters of each record


def read_fixed(
    block: Block,
    dialect: CsvDialect,
    layout: Sequence[FixedField],
    wanted: Sequence[str],
    kept: Collection[str] = (),
) -> TextBlock:
    """Read the fields `wanted` of a block.

    `kept`: fields in which the empty text is a value, even if it is a null text of the dialect.

    A record with a NUL byte in a wanted field is a reject. So is a record that ends before a field
    of the layout does, unless the dialect allows missing fields; then the field ends there.
    """
    if block.defect is not None:
        raise ValueError("a defective record has no fields")
    text = _utf8(block, dialect)
    fields = [field for field in layout if field.name in {*wanted}]
    records = np.arange(block.records_count, dtype=np.int64)
    end = 0 if dialect.allow_missing_fields else max(field.last for field in layout)
    # A character has at least a byte. Very many short records have no fields to find: memory stays
    # in proportion to the block.
    is_short = text.ends - text.starts < end
    short = {
        record: _characters(text.data[text.starts[record] : text.ends[record]])
        for record in np.flatnonzero(is_short).tolist()
    }
    records = records[~is_short]
    found = _find(text, records, fields)
    is_short = found.lengths < end
    short |= zip(records[is_short].tolist(), found.lengths[is_short].tolist(), strict=True)
    rows = np.flatnonzero(~is_short)
    no_empty = without_empty(dialect)
    columns = [
        _column(
            *(text.data, found.edges[name], rows),
            (no_empty if name in kept else dialect).null_strings,
        )
        for name in wanted
    ]
    rejects = list(_rejects(short, layout))
    good = TextRows(columns, records[rows])
    if not dialect.allow_nul and b"\0" in text.data:
        nuls = [holds_nul(column) for column in columns]
        good, nul_rejects = without_nul(good, nuls, wanted)
        rejects = sorted(rejects + nul_rejects, key=lambda reject: reject.record)
    return TextBlock(good.columns, good.records, rejects)


def _utf8(block: Block, dialect: CsvDialect) -> _Text:
    if dialect.decoding != "block":
        return _Text(block.data, block.starts, block.ends)
    offsets = decoded_offsets(block.data, dialect.encoding, block.starts, block.ends)
    return _Text(decode_bytes(block.data, dialect.encoding), *offsets)


def _characters(text: bytes) -> int:
    """Return the length of a text as the kernel counts it."""
    return len(text[:1]) + len(text[1:].translate(None, _INSIDE))


def _find(text: _Text, records: Offsets, fields: Sequence[FixedField]) -> _Found:
    from ringhaul.formats import fixed_kernels  # loads the compiler

    ordered = sorted(fields, key=lambda field: field.first)
    bits = {"both": 3, "left": fixed_kernels.LEFT, "right": fixed_kernels.RIGHT, "none": 0}
    edges = np.empty((len(ordered), 2 * len(records)), np.int32)
    lengths = np.empty(len(records), np.int64)
    fixed_kernels.find_fields(
        np.frombuffer(text.data, np.uint8),
        *(text.starts[records], text.ends[records], text.data.isascii()),
        np.array([field.first for field in ordered], np.int64),
        np.array([field.last for field in ordered], np.int64),
        np.array([bits[field.trim] for field in ordered], np.uint8),
        *(edges, lengths),
    )
    names = (field.name for field in ordered)
    return _Found(dict(zip(names, edges, strict=True)), lengths)


def _column(data: bytes, edges: _Edges, records: Offsets, nulls: Sequence[str]) -> pa.BinaryArray:
    """Return a field of some records, null where it reads as null."""
    if not len(edges):
        return pa.array([], pa.binary())
    # Field, gap, field ... in one column: every second of them is a field.
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    texts = [text.encode() for text in nulls]
    begins, ends = edges[::2], edges[1::2]
    is_null = null_fields(np.frombuffer(data, np.uint8), begins, ends, texts)[records]
    places = (2 * records).astype(np.int32)
    return pieces.take(pa.array(places, mask=is_null if is_null.any() else None))


def _rejects(short: Mapping[int, int], layout: Sequence[FixedField]) -> Iterator[FieldReject]:
    """Yield the rejects of records that are too short. `short`: record -> its characters."""
    ordered = sorted(layout, key=lambda field: field.first)
    lasts = [field.last for field in ordered]
    for record, length in sorted(short.items()):
        cut = ordered[bisect_right(lasts, length)]
        reason = (
            f"the record ends at character {length}, and this field is at {cut.place}; "
            f"{input_option('allow-missing-fields')} reads the rest as blanks"
        )
        yield FieldReject(record, cut.name, reason, None)
