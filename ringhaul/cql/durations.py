"""duration from text: months, days and nanoseconds, in the four forms of CQL.

| form | example |
|---|---|
| units | `1y2mo3w4d5h6m7s8ms9us10ns`: each at most once, in this order, in any case |
| ISO 8601 | `P1Y2M3DT4H5M6S` |
| ISO 8601, weeks | `P3W` |
| ISO 8601, alternative | `P0001-02-03T04:05:06` |

A minus in front makes all parts negative: the three parts never differ in sign.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import Encoded, TextColumn, parse_left, quote
from ringhaul.cql.hints import hint, reading
from ringhaul.cql.text_format import USUAL, TextFormat
from ringhaul.cql.vints import signed_vints

_SECOND_NS = 10**9
#: Unit -> (the part that it counts for, its size in that part).
_UNITS = {
    "y": ("months", 12),
    "mo": ("months", 1),
    "w": ("days", 7),
    "d": ("days", 1),
    "h": ("nanoseconds", 3600 * _SECOND_NS),
    "m": ("nanoseconds", 60 * _SECOND_NS),
    "s": ("nanoseconds", _SECOND_NS),
    "ms": ("nanoseconds", 10**6),
    "us": ("nanoseconds", 10**3),
    "ns": ("nanoseconds", 1),
}
_MICRO = "\N{MICRO SIGN}"
_UNITS_FORM = re.compile(
    "".join(rf"(?:(?P<{unit}>\d+){unit if unit != 'us' else f'[u{_MICRO}]s'})?" for unit in _UNITS),
    re.ASCII | re.IGNORECASE,
)
_ISO_FORM = re.compile(
    r"P(?:(?P<y>\d+)Y)?(?:(?P<mo>\d+)M)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_WEEKS_FORM = re.compile(r"P(?P<w>\d+)W", re.ASCII | re.IGNORECASE)
_ALTERNATIVE_FORM = re.compile(
    r"P(?P<y>\d{4})-(?P<mo>\d\d)-(?P<d>\d\d)T(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)",
    re.ASCII | re.IGNORECASE,
)
#: ISO 8601 with a fraction of a second, as Java writes it, if the format accepts `fractions`.
_FRACTION_FORM = re.compile(
    _ISO_FORM.pattern.replace(r"(?P<s>\d+)S", r"(?P<s>\d+)\.(?P<fraction>\d{1,9})S"),
    re.ASCII | re.IGNORECASE,
)
_FORMS = (_UNITS_FORM, _ISO_FORM, _WEEKS_FORM, _ALTERNATIVE_FORM)
_BITS = {"months": 32, "days": 32, "nanoseconds": 64}
#: More digits than any part can have; int() of very many digits is slow.
_DIGITS_MAX = 24


Duration = tuple[int, int, int]


def encode_durations(column: TextColumn, fmt: TextFormat) -> Encoded:
    """Encode durations as three signed vints: months, days, nanoseconds."""
    column = column.trimmed()
    values, bad = parse_left(
        column,
        np.arange(len(column)),
        "duration",
        lambda text: parse_duration(text, fmt),
        (0, 0, 0),
    )
    parts = np.array(values, np.int64).reshape(-1, 3)
    return Encoded(duration_cells(parts[:, 0], parts[:, 1], parts[:, 2]), bad)


def duration_cells(months: NDArray[Any], days: NDArray[Any], nanoseconds: NDArray[Any]) -> Cells:
    """Return the cells of durations, from one item of each array per row."""
    parts = [signed_vints(part) for part in (months, days, nanoseconds)]
    return Cells.variable(pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary())))


def parse_duration(text: str, fmt: TextFormat = USUAL) -> Duration:
    """Return (months, days, nanoseconds). Raises `ValueError` with the reason."""
    negative = text.startswith("-")
    match = None
    accepted = fmt.accepts("fractions")
    for form in (*_FORMS, _FRACTION_FORM) if accepted else _FORMS:
        match = form.fullmatch(text, int(negative))
        if match is not None and any(match.groups()):
            break
    else:
        found = ""
        if not accepted and len(text) < 100 and _FRACTION_FORM.fullmatch(text, int(negative)):
            read = functools.partial(parse_duration, text)
            found = hint([reading({"accept": "fractions"}, fmt, read, _shown)])
        raise ValueError(
            f"{quote(text)} is not a duration such as 1y2mo3d4h5m6s or P1Y2M3DT4H5M6S{found}"
        )
    parts = dict.fromkeys(_BITS, 0)
    for unit, digits in match.groupdict().items():
        if digits is None:
            continue
        if unit == "fraction":
            parts["nanoseconds"] += int(digits.ljust(9, "0"))
            continue
        part, factor = _UNITS[unit]
        digits = digits.lstrip("0") or "0"
        parts[part] += factor * (int(digits) if len(digits) <= _DIGITS_MAX else 10**_DIGITS_MAX)
    for part, bits in _BITS.items():
        largest = 2 ** (bits - 1) - (not negative)
        if parts[part] > largest:
            raise ValueError(f"{quote(text)} has more than {largest} {part}")
    sign = -1 if negative else 1
    return sign * parts["months"], sign * parts["days"], sign * parts["nanoseconds"]


def _shown(duration: Duration) -> str:
    """Return a duration in units."""
    months, days, nanoseconds = (abs(part) for part in duration)
    parts = ((months, "mo"), (days, "d"), (nanoseconds, "ns"))
    spelt = "".join(f"{part}{unit}" for part, unit in parts if part)
    return f"-{spelt}" if min(duration) < 0 else spelt
