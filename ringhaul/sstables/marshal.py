"""CQL types as an SSTable names and stores them: Cassandra's classes, and the width of values.

A serialization header names the type of each column by its class, such as
`org.apache.cassandra.db.marshal.Int32Type`; parameters follow in parentheses (`TypeParser`). A
collection or user-defined type that is frozen is wrapped in `FrozenType`, except inside another
one. Values of some types have one width and no length before them (`valueLengthIfFixed`).
"""

from __future__ import annotations

import re

from ringhaul.cql.types import CqlType

_PACKAGE = "org.apache.cassandra.db.marshal."
_CLASSES = {
    "ascii": "AsciiType",
    "bigint": "LongType",
    "blob": "BytesType",
    "boolean": "BooleanType",
    "date": "SimpleDateType",
    "decimal": "DecimalType",
    "double": "DoubleType",
    "duration": "DurationType",
    "float": "FloatType",
    "inet": "InetAddressType",
    "int": "Int32Type",
    "smallint": "ShortType",
    "text": "UTF8Type",
    "time": "TimeType",
    "timestamp": "TimestampType",
    "timeuuid": "TimeUUIDType",
    "tinyint": "ByteType",
    "uuid": "UUIDType",
    "varchar": "UTF8Type",
    "varint": "IntegerType",
}
_COLLECTIONS = {"list": "ListType", "set": "SetType", "map": "MapType"}
#: Bytes of a value, for types whose values have no length before them.
_WIDTHS = {
    "boolean": 1,
    "int": 4,
    "float": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "uuid": 16,
    "timeuuid": 16,
}


def fixed_width(kind: CqlType) -> int:
    """Return the bytes of each value of a type; 0 if values have a length before them."""
    if kind.name == "vector":
        return fixed_width(kind.of[0]) * kind.size
    return _WIDTHS.get(kind.name, 0)


def class_name(kind: CqlType, keyspace: str, *, frozen: bool = True) -> str:
    """Return the class of a type with its parameters.

    `keyspace`: the table's keyspace. `frozen`: whether a collection or user-defined type is wrapped
    in `FrozenType`; parts of a frozen type never are. Raises `KeyError` for a counter.
    """
    return _class_name(kind, keyspace, frozen=frozen)


def multi_cell_class(kind: CqlType, keyspace: str) -> str:
    """Return the class of an unfrozen collection or user-defined type, whose parts are frozen."""
    if kind.name == "udt":
        return _user_type(kind, keyspace, frozen_parts=True)
    inner = ",".join(class_name(part, keyspace) for part in kind.of)
    return f"{_PACKAGE}{_COLLECTIONS[kind.name]}({inner})"


def _class_name(kind: CqlType, keyspace: str, *, frozen: bool) -> str:
    inner = ",".join(class_name(part, keyspace, frozen=False) for part in kind.of)
    if kind.name in _COLLECTIONS:
        return _wrapped(f"{_PACKAGE}{_COLLECTIONS[kind.name]}({inner})", frozen=frozen)
    if kind.name == "udt":
        return _wrapped(_user_type(kind, keyspace, frozen_parts=False), frozen=frozen)
    if kind.name == "tuple":
        return f"{_PACKAGE}TupleType({inner})"
    if kind.name == "vector":
        element = class_name(kind.of[0], keyspace, frozen=frozen)
        return f"{_PACKAGE}VectorType({element} , {kind.size})"
    return _PACKAGE + _CLASSES[kind.name]


def _user_type(kind: CqlType, keyspace: str, *, frozen_parts: bool) -> str:
    fields = "".join(
        f",{_hex(name)}:{class_name(of, keyspace, frozen=frozen_parts)}"
        for name, of in zip(kind.fields, kind.of, strict=True)
    )
    return f"{_PACKAGE}UserType({keyspace},{_hex(kind.udt_name)}{fields})"


def _wrapped(name: str, *, frozen: bool) -> str:
    return f"{_PACKAGE}FrozenType({name})" if frozen else name


def _hex(text: str) -> str:
    return text.encode().hex()


def reversed_class(name: str) -> str:
    """Return the class of a clustering column in descending order."""
    return f"{_PACKAGE}ReversedType({name})"


def composite_class(names: list[str]) -> str:
    """Return the class of a partition key of several columns."""
    return f"{_PACKAGE}CompositeType({','.join(names)})"


def is_multi_cell(cql_type: str, kind: CqlType) -> bool:
    """Return whether a column has a cell for each element or field.

    An unfrozen list, set, map or user-defined type has such cells. `cql_type`: the type as the
    schema writes it, parsed to `kind`.
    """
    frozen = re.match(r"\s*frozen\s*<", cql_type, re.IGNORECASE) is not None
    return not frozen and kind.name in (*_COLLECTIONS, "udt")
