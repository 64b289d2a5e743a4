"""Arrays of single values: numbers, texts and times. Uses pyarrow.

Each maker takes the values, the name of the column and the number of the first record (0: not
known), for messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from ringhaul.client.errors import UsageError

#: Whole numbers up to here are the same as floats.
EXACT_MAX = 1 << 53
#: Digits of the longest decimal of Arrow.
DIGITS_MAX = 76


def at(first: int, place: int) -> str:
    """Return where a value is, behind the name of its column."""
    return f", record {first + place:,}" if first else ""


def typed(arrow: Callable[[], Any]) -> Callable[[Sequence[Any], str, int], Any]:
    """Return a maker of arrays of one type of Arrow."""

    def make(values: Sequence[Any], name: str, first: int) -> Any:
        import pyarrow as pa

        return pa.array(values, arrow())

    return make


def truths() -> Any:
    import pyarrow as pa

    return pa.bool_()


def floats() -> Any:
    import pyarrow as pa

    return pa.float64()


def binaries() -> Any:
    import pyarrow as pa

    return pa.binary()


def dates() -> Any:
    import pyarrow as pa

    return pa.date32()


def texts(values: Sequence[Any], name: str, first: int) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError as error:
        bad = next(n for n, text in enumerate(values) if text is not None and has_half(text))
        raise UsageError(
            f"column {name!r}{at(first, bad)}: half a surrogate pair is no character: "
            f"{error.reason}"
        ) from error


def addresses(values: Sequence[Any], name: str, first: int) -> Any:
    return texts([None if value is None else str(value) for value in values], name, first)


def has_half(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def uuids(values: Sequence[Any], name: str, first: int) -> Any:
    import pyarrow as pa

    stored = pa.array([None if one is None else one.bytes for one in values], pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), stored) if hasattr(pa, "uuid") else stored


def whole(values: Sequence[Any], name: str, first: int) -> Any:
    """64 bits if they are enough, else decimals."""
    import pyarrow as pa

    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return decimals(values, name, first)


def numbers(values: Sequence[Any], name: str, first: int) -> Any:
    """Floats and whole numbers: floats, if no whole number is changed by that."""
    for n, value in enumerate(values):
        if isinstance(value, int) and abs(value) > EXACT_MAX:
            raise UsageError(
                f"column {name!r}{at(first, n)}: the whole number {value} is among floats, which "
                "cannot hold it exactly: give all of them as Decimal, or as text"
            )
    return typed(floats)([None if v is None else float(v) for v in values], name, first)


def decimals(values: Sequence[Any], name: str, first: int) -> Any:
    import pyarrow as pa

    made = [None if value is None else Decimal(value) for value in values]
    whole = scale = 0
    for n, value in enumerate(made):
        if value is None:
            continue
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise UsageError(
                f"column {name!r}{at(first, n)}: {value} is no decimal of Cassandra: give "
                "None, or all values as floats"
            )
        whole, scale = max(whole, len(digits) + exponent), max(scale, -exponent)
    if whole + scale > DIGITS_MAX:
        raise UsageError(
            f"column {name!r} needs {whole + scale:,} digits to hold all its numbers, and Arrow's "
            f"decimals have {DIGITS_MAX}: give them as text, which `decimal` and `varint` take"
        )
    digits_count = max(whole + scale, 1)
    wide = pa.decimal128 if digits_count <= 38 else pa.decimal256
    return pa.array(made, wide(digits_count, scale))


def moments(values: Sequence[Any], name: str, first: int) -> Any:
    """Points in time, and dates, which mean their midnight."""
    import pyarrow as pa

    zoned = [
        isinstance(value, datetime) and value.tzinfo is not None
        for value in values
        if value is not None
    ]
    if all(zoned):
        return pa.array(values, pa.timestamp("us", "UTC"))
    if any(zoned):
        raise UsageError(
            f"column {name!r} has times with a zone and others without: give all of them a zone, "
            "or none (the option timezone then says which one is meant)"
        )
    plain = [datetime.combine(value, time()) if type(value) is date else value for value in values]
    return pa.array(plain, pa.timestamp("us"))


def times(values: Sequence[Any], name: str, first: int) -> Any:
    import pyarrow as pa

    for n, value in enumerate(values):
        if value is not None and value.tzinfo is not None:
            raise UsageError(
                f"column {name!r}{at(first, n)}: a time of day has no zone in Cassandra: "
                "give it without (.replace(tzinfo=None))"
            )
    return pa.array(values, pa.time64("us"))


def durations(values: Sequence[Any], name: str, first: int) -> Any:
    import pyarrow as pa

    if not any(getattr(value, "nanoseconds", 0) for value in values):
        return pa.array(values, pa.duration("us"))
    whole = [None if value is None else nanoseconds(value) for value in values]
    return pa.array(whole, pa.duration("ns"))


def nanoseconds(value: Any) -> int:
    seconds = value.days * 86_400 + value.seconds
    return int((seconds * 1_000_000 + value.microseconds) * 1000 + getattr(value, "nanoseconds", 0))
