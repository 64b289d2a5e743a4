"""Format whole numbers, floating point and booleans as text.

Kernels format whole numbers, and doubles with few decimals, if the process has loaded them; Arrow's
own formatters do the rest.

The sign and the payload of a NaN are not written.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.spell.fixed import numbers_of, validity

_KERNELS = "ringhaul.cql.spell.digits"
#: Loading the kernels takes a second, and they save 15 to 50 ns per value: a command that prints
#: the result of a query does not load them. A process that formats many values loads them before.
_FEW_DOUBLES = 100_000
#: Most values for the kernels: a text column holds 2 GiB, and a number takes up to 20 bytes.
_MANY = 100_000_000


def spell_integers(array: pa.Array) -> pa.StringArray:
    if _KERNELS not in sys.modules or len(array) > _MANY:
        return array.cast(pa.string())
    from ringhaul.cql.spell.digits import INTEGER_BYTES_MAX, digit_triples, put_integers

    values = numbers_of(array if array.type == pa.int64() else array.cast(pa.int64()), np.int64)
    offsets, out = _room(len(values), INTEGER_BYTES_MAX)
    put_integers(values, digit_triples(), offsets, out)
    return _texts(array, offsets, out)


def spell_booleans(array: pa.BooleanArray) -> pa.StringArray:
    """Format booleans as `true` or `false`."""
    return array.cast(pa.string())


def spell_floats(array: pa.Array) -> pa.StringArray:
    """Format floats as the shortest text that reads back as the same float32 or float64; `NaN`,
    `Infinity`."""
    short = _short_doubles(array) if array.type == pa.float64() else None
    if short is not None:
        return short
    text = array.cast(pa.string())
    if not np.isfinite(array.fill_null(0.0).to_numpy()).all():
        text = pc.if_else(pc.is_nan(array), "NaN", text)
        text = pc.if_else(pc.equal(array, np.inf), "Infinity", text)
        text = pc.if_else(pc.equal(array, -np.inf), "-Infinity", text)
    return text


def _short_doubles(array: pa.DoubleArray) -> pa.StringArray | None:
    """Like `spell_floats`, for a column whose values all have few decimals; None for others."""
    if (len(array) < _FEW_DOUBLES and _KERNELS not in sys.modules) or len(array) > _MANY:
        return None
    from ringhaul.cql.spell.digits import DOUBLE_BYTES_MAX, digit_triples, put_short_doubles

    values = numbers_of(array.fill_null(0.0) if array.null_count else array, np.float64)
    offsets, out = _room(len(values), DOUBLE_BYTES_MAX)
    if put_short_doubles(values, digit_triples(), offsets, out) < len(values):
        return None
    return _texts(array, offsets, out)


def _room(count: int, width: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Allocate a kernel's output: offsets of the values, and their bytes, at most `width` each."""
    return np.empty(count + 1, np.int32), np.empty(count * width, np.uint8)


def _texts(like: pa.Array, offsets: NDArray[np.int32], out: NDArray[np.uint8]) -> pa.StringArray:
    """Return the texts that a kernel wrote, without the unused space; null where `like` is."""
    data = pa.py_buffer(out[: offsets[-1]].copy())
    return pa.StringArray.from_buffers(
        len(like), pa.py_buffer(offsets), data, validity(like), like.null_count
    )
