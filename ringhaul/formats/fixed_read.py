"""Read a block of fixed-width records into columns of text.

A record is a line, and a field is the characters between two positions of it. A compiled kernel
finds where each field begins and ends in the block, without blanks around it. The block, seen as a
column of fields and gaps, then gives each field without a loop over records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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

_Edges = npt.NDArray[np.int32]


def fixed_dialect(dialect: CsvDialect) -> CsvDialect:
    """Return `dialect` without quotes and escapes: a record is a line, whatever it holds."""
    return replace(dialect, quote=None, escape=None)


class _Found(NamedTuple):
    """Where the fields of a block are, as offsets into `data`."""

    data: bytes
    #: Field -> its begin and its end by turns, for each record.
    edges: Mapping[str, _Edges]
    lengths: Offsets  #: of each record, in characters


def read_fixed(
    block: Block,
    dialect: CsvDialect,
    layout: Sequence[FixedField],
    wanted: Sequence[str],
    kept: Collection[str] = (),
) -> TextBlock:
    """Read the fields `wanted` of a block.

    `kept`: those in which an empty field is a text, even if it is a null text of the dialect.

    A record that ends before a field of the layout does is a reject, unless the dialect allows
    missing fields; then the field ends with its record. So is a record with a NUL byte in a wanted
    field.
    """
    if block.defect is not None:
        raise ValueError("a defective record has no fields")
    found = _find(block, dialect, [field for field in layout if field.name in {*wanted}])
    rejects: list[FieldReject] = []
    records = np.arange(block.records_count, dtype=np.int64)
    if not dialect.allow_missing_fields:
        is_short = found.lengths < max(field.last for field in layout)
        rejects = [
            _short(record, int(found.lengths[record]), layout, dialect)
            for record in np.flatnonzero(is_short).tolist()
        ]
        records = records[~is_short]
    no_empty = without_empty(dialect)
    columns = [
        _column(
            *(found.data, found.edges[name], records),
            (no_empty if name in kept else dialect).null_strings,
        )
        for name in wanted
    ]
    rows = TextRows(columns, records)
    if not dialect.allow_nul and b"\0" in found.data:
        nuls = [holds_nul(column) for column in columns]
        rows, nul_rejects = without_nul(rows, nuls, wanted, dialect)
        rejects = sorted(rejects + nul_rejects, key=lambda reject: reject.record)
    return TextBlock(rows.columns, rows.records, rejects)


def _find(block: Block, dialect: CsvDialect, fields: Sequence[FixedField]) -> _Found:
    from ringhaul.formats import fixed_kernels  # loads the compiler

    data, starts, ends = block.data, block.starts, block.ends
    if dialect.decoding == "block":
        offsets = decoded_offsets(data, dialect.encoding, starts, ends)
        starts, ends = (np.ascontiguousarray(one) for one in offsets)
        data = decode_bytes(data, dialect.encoding)
    ordered = sorted(fields, key=lambda field: field.first)
    bits = {"both": 3, "left": fixed_kernels.LEFT, "right": fixed_kernels.RIGHT, "none": 0}
    edges = np.empty((len(ordered), 2 * len(starts)), np.int32)
    lengths = np.empty(len(starts), np.int64)
    fixed_kernels.find_fields(
        *(np.frombuffer(data, np.uint8), starts, ends, data.isascii()),
        np.array([field.first for field in ordered], np.int64),
        np.array([field.last for field in ordered], np.int64),
        np.array([bits[field.trim] for field in ordered], np.uint8),
        *(edges, lengths),
    )
    return _Found(data, dict(zip((field.name for field in ordered), edges, strict=True)), lengths)


def _column(data: bytes, edges: _Edges, records: Offsets, nulls: Sequence[str]) -> pa.BinaryArray:
    """Return a field of some records, null where it reads as null."""
    # Field, gap, field ... in one column: every second of them is a field.
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    texts = [text.encode() for text in nulls]
    begins, ends = edges[::2], edges[1::2]
    is_null = null_fields(np.frombuffer(data, np.uint8), begins, ends, texts)[records]
    places = (2 * records).astype(np.int32)
    return pieces.take(pa.array(places, mask=is_null if is_null.any() else None))


def _short(
    record: int, length: int, layout: Sequence[FixedField], dialect: CsvDialect
) -> FieldReject:
    cut = min((field for field in layout if field.last > length), key=lambda field: field.first)
    reason = (
        f"the record ends at character {length}, and this field is at {cut.place}; "
        f"{dialect.option('allow-missing-fields')} reads the rest as blanks"
    )
    return FieldReject(record, cut.name, reason, None)
