"""Write time and TTL of rows, from fields of the input. Pure.

Both have the form of Cassandra's `writetime()` and `ttl()`, so that rows unloaded with them are
loaded unchanged. Values are read by the encoders of columns of the same types, whatever the format
of the source; a time is then made exact to the microsecond, where a column keeps milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.cql.column import quote
from ringhaul.cql.join import Column, Fault, Faults
from ringhaul.cql.moments import PER_SECOND, numbers_of
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import refusal
from ringhaul.cql.typed.faults import value_faults
from ringhaul.cql.types import CqlType
from ringhaul.option_names import job_option

#: Encodes one column's values into cells: (type, values, text format, null_length=).
ColumnEncoder = Callable[..., Column]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Cassandra's TTL is at most 20 years (`Attributes.MAX_TTL`).
TTL_S_MAX = 20 * 365 * 24 * 3600
#: An int64, except for its least value, which means no time (`Attributes.getTimestamp`).
WRITETIME_US_MAX = 2**63 - 1

_BIGINT, _INT, _TIMESTAMP = CqlType("bigint"), CqlType("int"), CqlType("timestamp")
_DATED = r"^\s*[+-]?[0-9]{4,9}-[0-9]{2}"
#: The digits after the milliseconds of a second.
_FINE = r":[0-9]{2}[.,][0-9]{3}(?P<fine>[0-9]+)"


class RowField(NamedTuple):
    """What a field says about its row."""

    label: str  #: name for messages
    option_name: str  #: name of the option that names the field
    kind: CqlType  #: type of its values, where they stay unchanged
    encode: Callable[[ColumnEncoder, Any, TextFormat], Column]
    refusal: Callable[[pa.DataType], str | None]

    @property
    def option(self) -> str:
        """The option that names the field, as users spell it."""
        return job_option(self.option_name)


def encode_write_times(encode: ColumnEncoder, values: Any, fmt: TextFormat) -> Column:
    """Return `bigint` cells, in microseconds since 1970, from such numbers and from times.

    `encode`: the encoder of the source's columns. `values`: a column in the form that it takes.
    """
    values, valid = _present(values)
    if _are_text(values):
        times_us, faults = _numbers_or_times(encode, values, fmt)
    elif refusal(_BIGINT, values.type) is None:
        times_us, faults = _numbers(encode, values, fmt)
    else:
        times_us, faults = _times(encode, values, _fine_of_type(values), fmt)
    for row in np.flatnonzero(times_us == -WRITETIME_US_MAX - 1).tolist():
        faults.setdefault(row, _fault(f"{times_us[row]} is outside {_RANGE}"))
    column = _spread(times_us.astype(">i8"), faults, valid)
    return _advised(
        column,
        "writetime",
        "give microseconds since 1970 or a time such as 2026-01-31T12:00:00.123456Z, or nothing",
    )


def encode_ttls(encode: ColumnEncoder, values: Any, fmt: TextFormat) -> Column:
    """Return `int` cells, in seconds from 0 to `TTL_S_MAX`. See `encode_write_times`."""
    values, valid = _present(values)
    cells, faults = encode(_INT, values, fmt, null_length=NULL_LENGTH)
    ttls_s = _integers(cells, ">i4")
    for row in np.flatnonzero((ttls_s < 0) | (ttls_s > TTL_S_MAX)).tolist():
        faults.setdefault(row, _fault(f"{ttls_s[row]} is outside 0..{TTL_S_MAX}"))
    column = _spread(ttls_s.astype(">i4"), faults, valid)
    return _advised(
        column, "ttl", f"give whole seconds, at most {TTL_S_MAX} (20 years), or nothing"
    )


def write_times_or(own: Cells, timestamps: Integers) -> Cells:
    """Return the write times of rows, with `timestamps` for rows without their own."""
    if own.fixed_values is not None:
        return own
    return Cells.fixed(np.where(own.lengths < 0, timestamps, _integers(own, ">i8")).astype(">i8"))


def ttls_or(own: Cells, ttl_s: int) -> Cells:
    """Return the TTLs of rows, with `ttl_s` for rows without their own; 0: the table's default."""
    if own.fixed_values is not None:
        return own
    if not ttl_s:
        return Cells(None, np.where(own.lengths < 0, UNSET_LENGTH, 4).astype(">i4"), own.values)
    return Cells.fixed(np.where(own.lengths < 0, ttl_s, _integers(own, ">i4")).astype(">i4"))


def _no_write_time(arrow: pa.DataType) -> str | None:
    """Return why values of an Arrow type cannot be write times; None: they can."""
    if refusal(_BIGINT, arrow) is None or refusal(_TIMESTAMP, arrow) is None:
        return None
    return f"{arrow} does not become a write time"


def _no_ttl(arrow: pa.DataType) -> str | None:
    why = refusal(_INT, arrow)
    return None if why is None else f"{arrow} does not become a TTL"


WRITETIME = RowField(
    "the write time", "timestamp-field", _BIGINT, encode_write_times, _no_write_time
)
TTL = RowField("the TTL", "ttl-field", _INT, encode_ttls, _no_ttl)


def marker_encoder(meant: RowField, encode: ColumnEncoder) -> ColumnEncoder:
    """Return the encoder of a statement's marker for a write time or a TTL, which reads all that a
    field of a load may hold."""

    def run(kind: CqlType, values: Any, fmt: TextFormat, *, null_length: int) -> Column:
        column = meant.encode(encode, values, fmt)
        valid = column.cells.lengths >= 0
        if valid.all():
            return column
        return Column(column.cells.filter(valid).spread(valid, null_length), column.faults)

    return run


_RANGE = f"{-WRITETIME_US_MAX}..{WRITETIME_US_MAX}"


def _numbers_or_times(
    encode: ColumnEncoder, values: Any, fmt: TextFormat
) -> tuple[Integers, Faults]:
    """Convert values of either kind: a value that begins like a date is a time, else a number."""
    if isinstance(values, list):
        # Values of Python, from a transform, keep their microseconds as text.
        values = [value.isoformat() if hasattr(value, "isoformat") else value for value in values]
    texts = _texts(values)
    dated = _matching(texts, _DATED)
    if not dated.any():
        return _numbers(encode, values, fmt)
    times_us = np.zeros(len(values), np.int64)
    fine = _fine_of_text(texts.filter(pa.array(dated)))
    times_us[dated], bad_times = _times(encode, filtered(values, dated), fine, fmt)
    faults = _moved(bad_times, dated)
    if not dated.all():
        times_us[~dated], bad_numbers = _numbers(encode, filtered(values, ~dated), fmt)
        faults |= _moved(bad_numbers, ~dated)
    return times_us, faults


def _numbers(encode: ColumnEncoder, values: Any, fmt: TextFormat) -> tuple[Integers, Faults]:
    cells, faults = encode(_BIGINT, values, fmt, null_length=NULL_LENGTH)
    return _integers(cells, ">i8"), faults


def _times(
    encode: ColumnEncoder, values: Any, fine: tuple[Integers, Mask], fmt: TextFormat
) -> tuple[Integers, Faults]:
    """Return the microseconds of times: the milliseconds that a column would hold, plus `fine`:
    the microseconds after them, and whether there are finer digits."""
    cells, faults = encode(_TIMESTAMP, values, _iso_format(fmt), null_length=NULL_LENGTH)
    fine_us, finer = fine
    milliseconds = _integers(cells, ">i8")
    outside = abs(milliseconds.astype(np.float64)) >= WRITETIME_US_MAX // 1000
    faults = {
        **_faults_of(values, finer, "is finer than a microsecond"),
        **_faults_of(values, outside, "is outside the write times that Cassandra can hold"),
        **faults,
    }
    return np.where(outside, 0, milliseconds) * 1000 + fine_us, faults


@lru_cache
def _iso_format(fmt: TextFormat) -> TextFormat:
    """Drop patterns and units, which are for columns; keep the zone of times without one."""
    return replace(fmt, timestamp_formats=(), epoch_unit="ms", epoch="1970-01-01")


def _fine_of_text(texts: pa.BinaryArray) -> tuple[Integers, Mask]:
    ascii_only = pa.array(_matching(texts, r"^[\x00-\x7f]*$"))
    plain = pc.if_else(ascii_only, texts, b"").cast(pa.string())
    digits = pc.fill_null(pc.extract_regex(plain, _FINE).field("fine"), "")
    finer = _matching(digits, "^[0-9]{3}[0-9]*[1-9]")
    padded = pc.utf8_slice_codeunits(pc.ascii_rpad(digits, 3, "0"), 0, 3)
    return padded.cast(pa.int64()).to_numpy(), finer


def _fine_of_type(values: Any) -> tuple[Integers, Mask]:
    per_ms = PER_SECOND[values.type.unit] // 1000 if pa.types.is_timestamp(values.type) else 1
    if per_ms <= 1:
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    fine_us, rest = np.divmod(numbers_of(values) % per_ms, per_ms // 1000)
    return fine_us, rest != 0


def _present(values: Any) -> tuple[Any, Mask | None]:
    """Return the values that are not null, and a mask of them (None: all)."""
    if isinstance(values, list):
        valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
        return (values, None) if valid.all() else (filtered(values, valid), valid)
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_null(values.type):
        values = values.cast(pa.string())
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()  # also its values may be null
    if not values.null_count:
        return values, None
    return values.drop_null(), values.is_valid().to_numpy(zero_copy_only=False)


def _are_text(values: Any) -> bool:
    """Return whether values may be numbers or times. Binary is CSV text: no other is loaded."""
    return isinstance(values, list) or any(
        of(values.type)
        for of in (
            pa.types.is_binary,
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
        )
    )


def _spread(values: npt.NDArray[Any], faults: Faults, valid: Mask | None) -> Column:
    """Return cells on the rows that have a value, nulls on other rows."""
    cells = Cells.fixed(values)
    if valid is None:
        return Column(cells, faults)
    return Column(cells.spread(valid, NULL_LENGTH), _moved(faults, valid))


def _moved(faults: Faults, chosen: Mask) -> Faults:
    """Renumber faults from places among the chosen rows to places among all rows."""
    rows = np.flatnonzero(chosen)
    return {int(rows[row]): fault for row, fault in faults.items()}


def cell_integers(cells: Cells) -> Integers:
    """Return the numbers in cells of write times or TTLs; 0 for null."""
    fixed = cells.fixed_values
    if fixed is not None:
        return fixed.astype(np.int64)
    given = cells.lengths[cells.lengths >= 0]
    return _integers(cells, f">i{int(given[0])}" if len(given) else ">i8")


def _integers(cells: Cells, wire: str) -> Integers:
    """Return the numbers in cells of one width; 0 for null."""
    fixed = cells.fixed_values
    if fixed is not None:
        return fixed.astype(np.int64)
    found = np.zeros(len(cells), np.int64)
    data = b"".join(cells.values.to_pylist())
    found[cells.lengths >= 0] = np.frombuffer(data, wire)
    return found


def _texts(values: Any) -> pa.BinaryArray:
    """Return values as text; empty for values of another kind."""
    if not isinstance(values, list):
        return values if values.type == pa.binary() else values.cast(pa.string()).cast(pa.binary())
    raw = [v.encode("utf-8", "surrogatepass") if isinstance(v, str) else b"" for v in values]
    return pa.array(raw, pa.binary())


def filtered(values: Any, mask: Mask) -> Any:
    """Return the values where `mask` is true, in either form that encoders take."""
    if isinstance(values, list):
        return list(compress(values, mask))
    return values.filter(pa.array(mask))


def _matching(texts: Any, pattern: str) -> Mask:
    found: Mask = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return found


def _faults_of(values: Any, bad: Mask, reason: str) -> Faults:
    """Return for each row of `bad` its value and this reason."""
    if not _are_text(values):
        return value_faults(_TIMESTAMP, values, bad, reason)
    texts = filtered(_texts(values), bad).to_pylist()
    return {
        row: _fault(f"{quote(text.decode('utf-8', 'backslashreplace'))} {reason}")
        for row, text in zip(np.flatnonzero(bad).tolist(), texts, strict=True)
    }


def _fault(reason: str) -> Fault:
    return Fault("", "", reason)


def _advised(column: Column, name: str, advice: str) -> Column:
    """Return the column with its faults named after the field, and with what to give instead."""
    faults = {
        row: Fault("", name, f"{fault.reason}; {advice}") for row, fault in column.faults.items()
    }
    return Column(column.cells, faults)
