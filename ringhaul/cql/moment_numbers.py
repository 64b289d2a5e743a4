"""Dates and times in columns of numbers: units since the epoch, if the format accepts moments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.column import BadValue, Encoded, TextColumn
from ringhaul.cql.hints import hint, known, with_options
from ringhaul.cql.temporal import encode_timestamps
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.value_words import UNIT_NS

NUMBERS = frozenset(
    ("tinyint", "smallint", "int", "bigint", "varint", "decimal", "float", "double")
)
#: A number; any other text is tried as a timestamp.
_NUMBER = r"^\s*[+-]?[0-9]*[.,]?[0-9]*(?:[eE][+-]?[0-9]+)?\s*$"
_ISO = r"^\s*[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:|\s*$)"
_MS_NS = 10**6
#: Longer texts are not timestamps, and copying a bad one of many MiB would cost time.
_LENGTH_MAX = 256

Encode = Callable[[TextColumn, TextFormat], Encoded]


def taking_moments(encode: Encode) -> Encode:
    """Return an encoder of numbers that also takes timestamps, or names the option that does."""

    @wraps(encode)
    def taking(column: TextColumn, fmt: TextFormat) -> Encoded:
        if fmt.accepts("moments"):
            return encode(_with_numbers(column, fmt), fmt)
        cells, bad = encode(column, fmt)
        return Encoded(cells, _hinted(encode, column, bad, fmt)) if bad else Encoded(cells, bad)

    return taking


def _with_numbers(column: TextColumn, fmt: TextFormat) -> TextColumn:
    """Return the column with digits in place of timestamps.

    A timestamp that is not a whole number of units stays as it is, and is rejected as a number.
    """
    among = (column.lengths <= _LENGTH_MAX) & ~column.matches(_NUMBER)
    if not among.any():
        return column
    texts = column.filter(among)
    cells, bad = encode_timestamps(texts, fmt)
    unit_ns = UNIT_NS[fmt.unit("timestamp") or "ms"]
    spelt = texts.array().to_pylist()
    kept = {row for row, _ in bad}
    stored = cells.values.to_pylist()
    for row, cell in enumerate(stored):
        if row in kept:
            continue
        since_ns = (int.from_bytes(cell, "big", signed=True) - fmt.epoch_ms) * _MS_NS
        if since_ns % unit_ns == 0:
            spelt[row] = str(since_ns // unit_ns).encode()
    found = pa.array(spelt, pa.binary())
    return TextColumn.of(pc.replace_with_mask(column.array(), pa.array(among), found))


def _hinted(
    encode: Encode, column: TextColumn, bad: list[BadValue], fmt: TextFormat
) -> list[BadValue]:
    """Return the bad values, with the option that reads timestamps among them."""
    rows = np.array([one.row for one in bad])
    rows = rows[column.lengths[rows] <= _LENGTH_MAX]
    texts = TextColumn.of(column.array().take(pa.array(rows)))
    among = texts.matches(_ISO)
    rows, texts = rows[among], texts.filter(among)
    unit = fmt.unit("timestamp")
    tried = [({"accept": "moments"}, unit or "ms")]
    tried += [] if unit else [({"accept": "moments", "epoch-unit": "s"}, "s")]
    readings: dict[int, list[str]] = {row: [] for row in rows.tolist()}
    for options, counted in tried if len(rows) else ():
        changed = with_options(fmt, tuple(options.items()))
        numbers = _with_numbers(texts, changed)
        refused = {one.row for one in encode(numbers, changed)[1]}
        for place, (row, number) in enumerate(
            zip(rows.tolist(), numbers.array().to_pylist(), strict=True)
        ):
            if place not in refused:
                found = known(options, number.decode(), counted)
                readings[row].append(found)
    return [one._replace(reason=one.reason + hint(readings.get(one.row, ()))) for one in bad]
