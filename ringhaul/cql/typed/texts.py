"""Encode values that are text, or whose text is exact, with the encoders of CSV cells and JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.column import TextColumn
from ringhaul.cql.join import Column, faults_of
from ringhaul.cql.moments import moment_text, numbers_of
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


def texts_of(array: Any) -> Any:
    """Return numbers as text with the fewest digits that read back unchanged, temporal values as
    ISO 8601, booleans as `true` and `false`."""
    arrow = array.type
    if pa.types.is_temporal(arrow):
        distinct = array.dictionary_encode()
        words = [moment_text(arrow, number) for number in numbers_of(distinct.dictionary).tolist()]
        return pa.array(words, pa.string()).take(distinct.indices)
    text = array.cast(pa.string())
    if pa.types.is_floating(arrow):
        for word, spelt in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
            text = pc.if_else(pc.equal(text, word), spelt, text)
    return text


def into_text(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode numbers, booleans and temporal values as texts."""
    return from_text(kind, texts_of(array), fmt)


def by_digits(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode floats and decimals by their digits; whole numbers must have no fraction but zeros."""
    plain = TextFormat(accept=("fractions",))
    return from_text(kind, texts_of(array), plain)


def by_words(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode whole numbers as booleans, by the words for true and false."""
    return from_text(kind, array.cast(pa.string()), fmt)


def by_text(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Encode numbers through their text, which is exact."""
    plain = TextFormat(epoch_unit=fmt.epoch_unit, timezone=fmt.timezone)
    return from_text(kind, array.cast(pa.string()), plain)
