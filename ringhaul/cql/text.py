"""Encode columns of text to cells: the table of scalar CQL types and its entry point."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ringhaul.cql.addresses import encode_inets
from ringhaul.cql.cells import Cells
from ringhaul.cql.column import BadValue, Encoded, TextColumn, without_nulls
from ringhaul.cql.decimals import encode_decimals, encode_varints
from ringhaul.cql.durations import encode_durations
from ringhaul.cql.empties import EMPTIABLE, taking_empties
from ringhaul.cql.identifiers import encode_uuids
from ringhaul.cql.moment_numbers import NUMBERS, taking_moments
from ringhaul.cql.numbers import encode_booleans, encode_floats, encode_integers
from ringhaul.cql.strings import encode_asciis, encode_blobs, encode_texts
from ringhaul.cql.temporal import encode_dates, encode_times, encode_timestamps
from ringhaul.cql.text_format import TextFormat

__all__ = ["ENCODERS", "BadValue", "TextFormat", "encode_text", "supported"]


def _typed(
    encode: Callable[[TextColumn, str, TextFormat], Encoded], cql_type: str
) -> Callable[[TextColumn, TextFormat], Encoded]:
    return lambda column, fmt: encode(column, cql_type, fmt)


#: Type -> encoder of a column without nulls.
ENCODERS: dict[str, Callable[[TextColumn, TextFormat], Encoded]] = {
    "ascii": encode_asciis,
    "text": _typed(encode_texts, "text"),
    "varchar": _typed(encode_texts, "varchar"),
    "blob": encode_blobs,
    "tinyint": _typed(encode_integers, "tinyint"),
    "smallint": _typed(encode_integers, "smallint"),
    "int": _typed(encode_integers, "int"),
    "bigint": _typed(encode_integers, "bigint"),
    "varint": encode_varints,
    "decimal": encode_decimals,
    "float": _typed(encode_floats, "float"),
    "double": _typed(encode_floats, "double"),
    "boolean": encode_booleans,
    "timestamp": encode_timestamps,
    "date": encode_dates,
    "time": encode_times,
    "duration": encode_durations,
    "uuid": _typed(encode_uuids, "uuid"),
    "timeuuid": _typed(encode_uuids, "timeuuid"),
    "inet": encode_inets,
}
ENCODERS |= {name: taking_moments(ENCODERS[name]) for name in sorted(NUMBERS)}
ENCODERS |= {name: taking_empties(ENCODERS[name]) for name in sorted(EMPTIABLE)}


def supported(cql_type: str) -> bool:
    """Whether text can be read as this type."""
    return cql_type in ENCODERS


def encode_text(
    cql_type: str, values: pa.BinaryArray, fmt: TextFormat, *, null_length: int
) -> tuple[Cells, list[BadValue]]:
    """Encode UTF-8 text as `cql_type`. Returns the cells, and the bad values in row order.

    An Arrow null becomes a cell of length `null_length` (-1: null, -2: unset). Cells of bad values
    are arbitrary: filter them out. `cql_type` must be `supported`.
    """
    column, valid = without_nulls(values)
    cells, bad = ENCODERS[cql_type](column, fmt)
    bad.sort()
    if valid is None:
        return cells, bad
    if bad:
        rows = np.flatnonzero(valid)
        bad = [BadValue(int(rows[row]), reason) for row, reason in bad]
    return cells.spread(valid, null_length), bad
