"""Encode values that are text, or whose text is exact, with the encoders of CSV cells and JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.column import TextColumn
from ringhaul.cql.join import Column, faults_of
from ringhaul.cql.nested import encode_column
from ringhaul.cql.strings import encode_texts
from ringhaul.cql.text import ENCODERS
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType


def from_text(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode text as scalars, as in a CSV cell."""
    column = TextColumn.of(array)
    if kind.name in ("text", "varchar"):
        cells, bad = encode_texts(column, kind.name, None)
    else:
        cells, bad = ENCODERS[kind.name](column, fmt)
    return Column(cells, faults_of(bad, kind.name))


def from_binary(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode binary that holds the text of scalars."""
    return from_text(kind, array.cast(pa.binary()), fmt)


def from_json(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode text that holds nested values as JSON or CQL literals."""
    cells, faults = encode_column(kind, array.cast(pa.binary()), fmt, null_length=NULL_LENGTH)
    return Column(cells, faults)


def by_text(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode numbers through their text, which is exact."""
    plain = TextFormat(epoch_unit=fmt.epoch_unit, timezone=fmt.timezone)
    return from_text(kind, array.cast(pa.string()), plain)
