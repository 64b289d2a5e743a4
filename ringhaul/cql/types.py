"""CQL types as trees: parsed from CQL text, stored as JSON with a job, with an Arrow form. Pure.

Arrow forms are lossless and distinguish null from every value:

| CQL | Arrow |
|---|---|
| ascii, text, varchar, inet, decimal, varint | string (canonical text) |
| tinyint, smallint, int, bigint, counter | int8, int16, int32, int64, int64 |
| float, double, boolean | float, double, bool |
| timestamp | timestamp[ms, UTC]: the server's own int64 |
| date | date32: days from 1970-01-01, the whole int32 range |
| time | time64[ns] |
| duration | struct of months int32, days int32, nanoseconds int64 |
| uuid, timeuuid | fixed-size binary of 16 bytes |
| blob | binary |
| list, set | list |
| map | map |
| tuple | struct with fields "0", "1", ... |
| user-defined type | struct with its fields |
| vector<T, n> | fixed-size list |

Each decimal has its own scale, and a varint is unbounded. Arrow's decimals have a fixed scale and a
limited size, so both types are text in Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ringhaul.errors import UsageError

DURATION = pa.struct(
    [
        pa.field("months", pa.int32()),
        pa.field("days", pa.int32()),
        pa.field("nanoseconds", pa.int64()),
    ]
)

#: Types whose values are any text, and the numbers with a binary exponent.
TEXTS, FLOATS = ("ascii", "text", "varchar"), ("float", "double")
#: Scalar type -> Arrow type.
SCALARS: Mapping[str, pa.DataType] = {
    "ascii": pa.string(),
    "text": pa.string(),
    "varchar": pa.string(),
    "inet": pa.string(),
    "decimal": pa.string(),
    "varint": pa.string(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "counter": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "date": pa.date32(),
    "time": pa.time64("ns"),
    "duration": DURATION,
    "uuid": pa.binary(16),
    "timeuuid": pa.binary(16),
    "blob": pa.binary(),
}

#: A user-defined type's fields: (name, CQL type) in order.
Fields = tuple[tuple[str, str], ...]

_TOKEN = re.compile(r"""\s*(?:("(?:[^"]++|"")*+")|([^<>,\s"]+)|([<>,]))""")
#: The dimension of a vector: in Cassandra an int.
_SIZE = re.compile("[0-9]{1,10}")


@dataclass(frozen=True)
class CqlType:
    """A CQL type. `name`: a key of `SCALARS`, or list, set, map, tuple, vector, udt.

    `of`: element types (list, set, vector: one; map: key and value; tuple, udt: one per field).
    `fields`: the field names of a user-defined type. `size`: the dimension of a vector.
    """

    name: str
    of: tuple[CqlType, ...] = ()
    fields: tuple[str, ...] = ()
    size: int = 0
    #: Name of a user-defined type in its schema, if the type was parsed. Types of the same fields
    #: are equal whatever their names.
    udt_name: str = field(default="", compare=False)

    @property
    def scalar(self) -> bool:
        return self.name in SCALARS

    def __str__(self) -> str:
        """Return the type in CQL; a user-defined type by its fields, as its name is not known."""
        if self.name == "udt":
            pairs = zip(self.fields, self.of, strict=True)
            return f"udt<{', '.join(f'{name} {of}' for name, of in pairs)}>"
        parameters = [str(of) for of in self.of] + ([str(self.size)] if self.size else [])
        return f"{self.name}<{', '.join(parameters)}>" if parameters else self.name

    def arrow(self) -> pa.DataType:
        """Return the Arrow form; see the module's table."""
        match self.name:
            case "list" | "set":
                return pa.list_(pa.field("item", self.of[0].arrow()))
            case "map":
                return pa.map_(self.of[0].arrow(), self.of[1].arrow())
            case "tuple":
                return pa.struct([pa.field(str(i), t.arrow()) for i, t in enumerate(self.of)])
            case "udt":
                pairs = zip(self.fields, self.of, strict=True)
                return pa.struct([pa.field(name, t.arrow()) for name, t in pairs])
            case "vector":
                return pa.list_(pa.field("item", self.of[0].arrow()), self.size)
            case _:
                return SCALARS[self.name]

    def to_json(self) -> list[Any]:
        """Return the type as nested lists, for `from_json`."""
        return [self.name, [t.to_json() for t in self.of], list(self.fields), self.size]

    @classmethod
    def from_json(cls, data: list[Any]) -> CqlType:
        name, of, fields, size = data
        return cls(name, tuple(cls.from_json(t) for t in of), tuple(fields), size)


#: Deepest nesting of types to parse; real types are hardly ever nested ten deep. Each level takes
#: one or more Python calls, whose depth is limited to a thousand.
DEPTH_MAX = 100


class UnknownType(UsageError):
    """A type that ringhaul does not know, such as a custom type of the server."""


def parse_type(text: str, user_types: Mapping[str, Fields] | None = None) -> CqlType:
    """Parse CQL text such as `frozen<map<text, list<int>>>`.

    `frozen` changes nothing on the wire and is dropped. `user_types`: name -> fields, from the
    table's keyspace. Raises `UnknownType`.
    """
    if text.count("<") > DEPTH_MAX and _depth(text) > DEPTH_MAX:
        raise UnknownType(f"the type {text[:60]!r}... is nested more than {DEPTH_MAX} deep")
    tokens = [next(filter(None, match)) for match in _TOKEN.findall(text)]
    found, end = _parse(tokens, 0, text, user_types or {})
    if end != len(tokens):
        raise UnknownType(f"cannot read the type {_short(text)}")
    return found


def _short(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}..."


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        if character == "<":
            depth += 1
            deepest = max(deepest, depth)
        elif character == ">":
            depth -= 1
    return deepest


def _parse(
    tokens: list[str], at: int, text: str, user_types: Mapping[str, Fields]
) -> tuple[CqlType, int]:
    if at >= len(tokens):
        raise UnknownType(f"cannot read the type {_short(text)}")
    name, at = tokens[at], at + 1
    if at < len(tokens) and tokens[at] == "<":
        return _parse_parameters(name.lower(), tokens, at + 1, text, user_types)
    if name.lower() in SCALARS:
        return CqlType(name.lower()), at
    plain = name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
    if plain not in user_types:
        raise UnknownType(f"type {name} is not known")
    fields = user_types[plain]
    types = tuple(parse_type(field_type, user_types) for _, field_type in fields)
    names = tuple(name for name, _ in fields)
    return CqlType("udt", types, names, udt_name=plain), at


def _parse_parameters(
    name: str, tokens: list[str], at: int, text: str, user_types: Mapping[str, Fields]
) -> tuple[CqlType, int]:
    """Parse the parameters between `<` and `>`."""
    of: list[CqlType] = []
    size = 0
    while True:
        if name == "vector" and of:
            if at >= len(tokens) or not _SIZE.fullmatch(tokens[at]):
                raise UnknownType(f"cannot read the type {_short(text)}")
            size, at = int(tokens[at]), at + 1
        else:
            inner, at = _parse(tokens, at, text, user_types)
            of.append(inner)
        if at >= len(tokens) or tokens[at] not in ",>":
            raise UnknownType(f"cannot read the type {_short(text)}")
        at += 1
        if tokens[at - 1] == ">":
            break
    counts = {"frozen": 1, "list": 1, "set": 1, "map": 2, "vector": 1}
    if name == "frozen" and len(of) == 1:
        return of[0], at
    if name == "tuple" or (name in counts and counts[name] == len(of)):
        return CqlType(name, tuple(of), size=size), at
    raise UnknownType(f"cannot read the type {_short(text)}")


def type_texts(types: Sequence[CqlType]) -> tuple[list[str], tuple[tuple[str, Fields], ...]]:
    """Return types as CQL text for `parse_type`, with made-up names for user-defined types."""
    made: list[tuple[str, Fields]] = []

    def text(kind: CqlType) -> str:
        of = [text(inner) for inner in kind.of]
        if kind.name == "udt":
            name = f"udt_{len(made)}"
            made.append((name, tuple(zip(kind.fields, of, strict=True))))
            return name
        parameters = of + ([str(kind.size)] if kind.size else [])
        return f"{kind.name}<{', '.join(parameters)}>" if parameters else kind.name

    return [text(kind) for kind in types], tuple(made)
