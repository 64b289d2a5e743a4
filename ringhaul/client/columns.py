"""Python values become columns of Arrow, with nothing of them lost on the way. Uses pyarrow.

Arrow's own conversion drops what it did not expect: the time of a `datetime` among dates, the zone
of one `datetime` among others without. So the types of a column are looked at first, all of them.
Types that mean different things, or that Arrow has no place for, are refused with the column.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import accumulate, chain
from typing import Any

from ringhaul.client.errors import UsageError
from ringhaul.client.scalars import (
    addresses,
    at,
    binaries,
    dates,
    decimals,
    durations,
    floats,
    moments,
    numbers,
    texts,
    times,
    truths,
    typed,
    uuids,
    whole,
)

#: Keys of the dictionaries of one column that become a struct, with a field for each of them.
FIELDS_MAX = 1000

#: Kind of value of a class and its subclasses.
_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "truth",
    int: "whole number",
    float: "float",
    Decimal: "decimal",
    str: "text",
    bytes: "bytes",
    bytearray: "bytes",
    memoryview: "bytes",
    uuid.UUID: "uuid",
    datetime: "moment",
    date: "date",
    time: "time",
    timedelta: "duration",
    list: "list",
    tuple: "list",
    set: "set",
    frozenset: "set",
    deque: "list",
}
#: Classes of libraries that need not be installed, by the module's first name and their own.
_FOREIGN = {
    ("numpy", "generic"): "scalar of numpy",
    ("numpy", "ndarray"): "array",
    ("pandas", "NAType"): "null",
    ("pandas", "NaTType"): "null",
    ("ipaddress", "IPv4Address"): "address",
    ("ipaddress", "IPv6Address"): "address",
}
#: Kinds of the classes seen so far.
_KNOWN: dict[type, str] = {}
#: What to do about values of some classes, which are refused.
_REMEDIES = {
    ("pandas", "Period"): "its .to_timestamp(), or a text",
    ("pandas", "Interval"): "two columns, its .left and .right",
    ("enum", "Enum"): "its .value",
    ("builtins", "complex"): "two columns, its .real and .imag",
}


def kind_of(of: type) -> str:
    """Return the kind of values of a class; empty: Arrow has no type for them."""
    found = _KNOWN.get(of)
    if found is None:
        found = _KNOWN[of] = _kind(of)
    return found


def _kind(of: type) -> str:
    if issubclass(of, tuple) and hasattr(of, "_fields"):
        return "named tuple"
    for base in of.__mro__:
        if base in _KINDS:
            return _KINDS[base]
        if found := _FOREIGN.get((base.__module__.partition(".")[0], base.__name__)):
            return found
    return "dictionary" if issubclass(of, Mapping) else ""


def column(values: Sequence[Any], name: str, first: int = 0, *, nan_is_null: bool = False) -> Any:
    """Return an array of the values, or a chunked one of texts of over 2 GiB.

    `name`: the column, for messages; `first`: the number of the first record; 0: the values are
    elements of lists, whose records are not known. `nan_is_null`: NaN
    means a missing value, as in a column of objects of pandas. Raises `UsageError` for values that
    have no type in common.
    """
    import pyarrow as pa

    kinds = {kind_of(each) for each in set(map(type, values))}
    if "scalar of numpy" in kinds:
        values = [_of_numpy(value, f"{name!r}{at(first, n)}") for n, value in enumerate(values)]
        kinds = {kind_of(each) for each in set(map(type, values))}
    if nan_is_null and "float" in kinds:
        values = [None if type(value) is float and value != value else value for value in values]
        kinds = {kind_of(each) for each in set(map(type, values))}
    if "null" in kinds:
        values = [None if kind_of(type(value)) == "null" else value for value in values]
        kinds.remove("null")
    if "" in kinds:
        raise _no_type(values, name, first)
    if not kinds:
        return pa.nulls(len(values))
    make = _MAKERS.get(frozenset(kinds))
    if make is None:
        raise _mixed(values, name, first)
    try:
        return make(values, name, first)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"column {name!r}: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _of_numpy(value: Any, where: str) -> Any:
    """Return a value of Python for a scalar of numpy; other values come back unchanged."""
    if kind_of(type(value)) != "scalar of numpy":
        return value
    if value.dtype.kind in "mM":
        if value != value:  # NaT
            return None
        unit = str(value.dtype)
        if unit.endswith(("64[Y]", "64[M]")):
            raise UsageError(
                f"column {where}: {value!r} counts months or years, which are no dates and have no "
                "fixed length: give a date or a text"
            )
        value = (
            value if unit.endswith("datetime64[D]") else value.astype(f"{value.dtype.kind}8[us]")
        )
    plain = value.item()
    if type(plain) is type(value) or (value.dtype.kind in "mM" and isinstance(plain, int)):
        raise UsageError(
            f"column {where}: {value!r} ({value.dtype}) is no value of Python: give a number, a "
            "datetime or a text"
        )
    return plain


def _no_type(values: Sequence[Any], name: str, first: int) -> UsageError:
    place, value = next((n, v) for n, v in enumerate(values) if not kind_of(type(v)))
    remedy = "a value of Python's own types, such as a text"
    for base in type(value).__mro__:
        key = (base.__module__.partition(".")[0], base.__name__)
        remedy = _REMEDIES.get(key, remedy)
    if hasattr(type(value), "__dataclass_fields__"):
        remedy = "dataclasses.asdict of it"
    return UsageError(
        f"column {name!r}{at(first, place)}: a value of the type {type(value).__name__} "
        f"cannot be loaded: give {remedy}"
    )


def _mixed(values: Sequence[Any], name: str, first: int) -> UsageError:
    """Return the error for values of several kinds, with the first record of each of two."""
    seen: dict[str, str] = {}
    for n, value in enumerate(values):
        if value is not None:
            place = f" in record {first + n:,}" if first else ""
            seen.setdefault(kind_of(type(value)), f"{type(value).__name__}{place}")
    one, other, *_ = seen.values()
    remedy = "give all of them one type, or all as text"
    if not first:
        remedy += "; the values of a tuple or a user type as a dictionary"
    return UsageError(f"column {name!r} has values of different types: {one}, {other}; {remedy}")


def _lists(values: Sequence[Any], name: str, first: int) -> Any:
    import pyarrow as pa

    values = [_listed(value) for value in values]
    elements = list(chain.from_iterable(value for value in values if value is not None))
    return pa.ListArray.from_arrays(_offsets(values), column(elements, f"{name}[]"))


def _listed(value: Any) -> Any:
    """Return a list for a set or an array; others come back unchanged."""
    kind = kind_of(type(value))
    return _ordered(value) if kind == "set" else _elements(value) if kind == "array" else value


def _ordered(value: Any) -> list[Any]:
    """Return the elements of a set in an order that is the same in each process."""
    try:
        return sorted(value)
    except TypeError:  # elements of several types, which are refused later, or without an order
        return list(value)


def _offsets(values: Sequence[Any]) -> Any:
    """Return where each list begins among all elements, null for a null list, and where the last
    list ends."""
    import pyarrow as pa

    ends = accumulate((0 if value is None else len(value) for value in values), initial=0)
    starts = [None if value is None else end for value, end in zip(values, ends, strict=False)]
    total = sum(len(value) for value in values if value is not None)
    return pa.array([*starts, total], pa.int32())


def _arrays(values: Sequence[Any], name: str, first: int) -> Any:
    """Arrays of numpy. Arrays of numbers become lists without a value of Python for each."""
    import pyarrow as pa

    given = [value for value in values if value is not None]
    alike = {(value.dtype, value.ndim) for value in given}
    if len(alike) == 1 and given[0].ndim == 1 and given[0].dtype.kind in "iufb":
        import numpy as np

        return pa.ListArray.from_arrays(_offsets(values), pa.array(np.concatenate(given)))
    if any(value.ndim == 0 for value in given):
        raise UsageError(f"column {name!r} has arrays without a dimension: give their .item()")
    return _lists(values, name, first)


def _elements(array: Any) -> list[Any]:
    """Return the elements of an array: arrays, if it has several dimensions."""
    plain = array.ndim == 1 and array.dtype.kind not in "mM"
    return list(array.tolist()) if plain else list(array)


def _dictionaries(values: Sequence[Any], name: str, first: int) -> Any:
    """A struct with a field for each key of any of them; a map if keys are not texts."""
    import pyarrow as pa

    given = [value for value in values if value is not None]
    keys = list(dict.fromkeys(chain.from_iterable(given)))
    if not keys or not all(isinstance(key, str) for key in keys):
        items = list(chain.from_iterable(value.values() for value in given))
        names = list(chain.from_iterable(given))
        made = column(names, f"{name} (keys)") if keys else pa.array([], pa.string())
        return pa.MapArray.from_arrays(_offsets(values), made, column(items, f"{name} (values)"))
    check_fields(len(keys), name)
    fields = [
        column(
            [None if value is None else value.get(key) for value in values], f"{name}.{key}", first
        )
        for key in keys
    ]
    return pa.StructArray.from_arrays(fields, keys, mask=pa.array([v is None for v in values]))


def check_fields(count: int, name: str) -> None:
    """Raise `UsageError` if a struct of a column would have too many fields."""
    if count > FIELDS_MAX:
        raise UsageError(
            f"column {name!r} has dictionaries of more than {FIELDS_MAX:,} different keys: for a "
            "map give them as such, in a table with the type pa.map_(pa.string(), ...)"
        )


def _named_tuples(values: Sequence[Any], name: str, first: int) -> Any:
    plain = [None if value is None else value._asdict() for value in values]
    return _dictionaries(plain, name, first)


_MAKERS: Mapping[frozenset[str], Callable[[Sequence[Any], str, int], Any]] = {
    frozenset(["truth"]): typed(truths),
    frozenset(["whole number"]): whole,
    frozenset(["float"]): typed(floats),
    frozenset(["float", "whole number"]): numbers,
    frozenset(["decimal"]): decimals,
    frozenset(["decimal", "whole number"]): decimals,
    frozenset(["text"]): texts,
    frozenset(["address"]): addresses,
    frozenset(["bytes"]): typed(binaries),
    frozenset(["uuid"]): uuids,
    frozenset(["date"]): typed(dates),
    frozenset(["moment"]): moments,
    frozenset(["date", "moment"]): moments,
    frozenset(["time"]): times,
    frozenset(["duration"]): durations,
    frozenset(["list"]): _lists,
    frozenset(["set"]): _lists,
    frozenset(["list", "set"]): _lists,
    frozenset(["list", "array"]): _lists,
    frozenset(["array"]): _arrays,
    frozenset(["dictionary"]): _dictionaries,
    frozenset(["named tuple"]): _named_tuples,
}
