"""Types of new columns that the command names: `--type COLUMN=TYPE`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ringhaul.cluster.schema import nearest
from ringhaul.cql.nested import encode_column, encode_json, loadable
from ringhaul.cql.text import TextFormat
from ringhaul.cql.typed import refusal
from ringhaul.cql.types import SCALARS, CqlType, Fields, UnknownType, parse_type
from ringhaul.errors import UsageError
from ringhaul.mapping.arrow_inference import arrow_words
from ringhaul.mapping.inference import Inferred, Number

UserTypes = tuple[tuple[str, Fields], ...]
_SIGN = re.compile(r"\s*([<>,])\s*")
_WORDS = (*SCALARS, "list", "set", "map", "tuple", "vector", "frozen")


def given_types(
    given: Mapping[str, str], columns: Sequence[str], user_types: UserTypes
) -> dict[str, str]:
    """Return column -> its CQL type, as a statement has it.

    Raises `UsageError` for a column that the table would not have, and for an unknown type.
    """
    found = {}
    for name, text in given.items():
        column = name.lower() if name not in columns and name.lower() in columns else name
        if column not in columns:
            raise UsageError(
                f"--type {name}={text}: the table would have no such column; its columns are "
                f"{', '.join(columns[:12])}{nearest(name, columns)}"
            )
        spelt = _SIGN.sub(r"\1", text.strip()).replace(",", ", ")
        spelt = spelt if '"' in spelt else spelt.lower()
        try:
            kind = parse_type(spelt, dict(user_types))
        except UnknownType:
            names = [*_WORDS, *(name for name, _ in user_types)]
            raise UsageError(
                f"--type {name}={text}: neither a type of CQL nor of the keyspace"
                f"{nearest(spelt, names)}"
            ) from None
        if kind.name == "counter" or not loadable(kind):
            raise UsageError(f"--type {name}={text}: no file can be loaded into such a column")
        found[column] = spelt
    return found


def as_given(cql_type: str) -> Inferred:
    """Return the type with its reason."""
    return Inferred(cql_type, "as --type says")


def misfits(name: str, values: Any, kind: CqlType, fmt: TextFormat) -> list[str]:
    """Return why sampled values of a column do not fit the type that was given for it.

    `values`: texts of CSV as an Arrow array, or parsed JSON.
    """
    if isinstance(values, pa.Array):
        column = encode_column(kind, values, fmt, null_length=-1)
    else:
        column = encode_json(kind, [_plain(value) for value in values], fmt, null_length=-1)
    return [fault.words(name) for _, fault in sorted(column.faults.items())]


def check_arrow(arrow: pa.DataType, kind: CqlType) -> None:
    """Raise `UsageError` if no value of a column of Parquet becomes the type that was given."""
    if refusal(kind, arrow) is not None:
        raise UsageError(f"{arrow_words(arrow)} do not become {kind}, as --type says")


def _plain(value: Any) -> Any:
    """Return a value as the load itself decodes it: numbers as their digits."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value
