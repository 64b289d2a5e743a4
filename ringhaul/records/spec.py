"""Records as the plain data of a job's spec: a key for each field, with the field's name.

    @dataclass(frozen=True, kw_only=True)
    class Rules:
        text: TextFormat = field(metadata=spec(TextFormat.from_json))
        where: str = ""
        sstable_bytes: int = field(default=2**30, metadata=spec(later=True))

A tuple of plain values is a list there, and read as a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, fields
from typing import Any

_READ, _LATER = "spec_read", "spec_later"


def spec(read: Callable[[Any], Any] | None = None, *, later: bool = False) -> dict[str, Any]:
    """Return the metadata of a field. `read`: makes its value from the plain data; None: the data
    is the value. `later`: jobs of older versions lack the key, and have the field's default."""
    return {_READ: read, _LATER: later}


def written(record: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the plain data of a record's fields, `without` some."""
    return {
        one.name: _plain(getattr(record, one.name))
        for one in fields(record)
        if one.name not in without
    }


def values_in(
    record: type, data: Mapping[str, Any], *, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return field -> value from the plain data of a record, `without` some fields.

    Raises `KeyError` for a key that is missing and was never absent.
    """
    return {
        one.name: _value(one, data[one.name])
        for one in fields(record)
        if one.name not in without and not (one.metadata.get(_LATER) and one.name not in data)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.to_json() if hasattr(value, "to_json") else value


def _value(one: Field[Any], data: Any) -> Any:
    read = one.metadata.get(_READ)
    if read is not None:
        return read(data)
    return tuple(data) if isinstance(data, list) else data
