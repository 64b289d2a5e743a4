"""Nested values from JSON: lists, sets, maps, tuples, user-defined types, vectors, at any depth.

| CQL | JSON |
|---|---|
| list, set, vector, tuple | array |
| map | object, its names being the keys' text; or array of [key, value] |
| user-defined type | object by field name; fields that are missing are null |
| scalar | string as in a CSV cell; number; true, false |
| null | null, where Cassandra allows it: not inside lists, sets, maps and vectors |

A cell of text may also hold a CQL literal (`literal.py`), and so may a string in JSON.

All elements of a column become one column of their type, which the encoder of that type reads at
once; their cells are then joined (`join.py`). Numbers stay text, so that all digits are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.column import TextColumn, quote
from ringhaul.cql.hints import hint, reading
from ringhaul.cql.join import (
    Column,
    Fault,
    Faults,
    collection_cells,
    faults_of,
    fields_cells,
    lift,
    null_faults,
    vector_cells,
)
from ringhaul.cql.literal import parse_literal
from ringhaul.cql.loose_spellings import parse_loose
from ringhaul.cql.spelt_json import SPELT_DECODER, Json, strict_json, unique_names
from ringhaul.cql.text import ENCODERS, encode_text
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType
from ringhaul.option_names import input_option

_DECODER = json.JSONDecoder(
    parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=unique_names
)
#: Longer cells are not tried in other spellings for a message.
_HINT_BYTES_MAX = 10_000
_CONTAINERS = ("list", "set", "map", "tuple", "udt", "vector")


def loadable(kind: CqlType) -> bool:
    """Whether values of this type can be written by INSERT."""
    if kind.name in _CONTAINERS:
        return all(map(loadable, kind.of))
    return kind.name in ENCODERS


def parse_json(text: bytes, decoder: json.JSONDecoder = _DECODER) -> Json:
    """Parse one JSON text in UTF-8. Raises `ValueError` with the reason."""
    try:
        return decoder.decode(text.decode())
    except UnicodeDecodeError as error:
        reason = f"invalid UTF-8 at byte {error.start + 1}"
    except json.JSONDecodeError as error:
        # Python ends some of its messages with "at": it puts line and column behind them.
        reason = f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
    except RecursionError:
        reason = "not readable JSON: its nesting is too deep"
    # Outside of the handlers: as its context, the first error would keep a copy of the text.
    raise ValueError(reason)


def encode_column(
    kind: CqlType, values: pa.BinaryArray, fmt: TextFormat, *, null_length: int
) -> Column:
    """Encode a column of text of any type; nested values are JSON or CQL literals. `encode_text` is
    for scalars only."""
    if kind.name in ENCODERS:
        cells, bad = encode_text(kind.name, values, fmt, null_length=null_length)
        return Column(cells, faults_of(bad, kind.name))
    parsed, faults = _parse_column(kind, values, fmt)
    cells, more = _encode(kind, parsed, json_format(fmt), null_length)
    return Column(cells, more | faults)


def _parse_column(
    kind: CqlType, values: pa.BinaryArray, fmt: TextFormat
) -> tuple[list[Json], Faults]:
    """Return the parsed values, None for a null or a fault, and the faults."""
    parsed: list[Json] = []
    faults: Faults = {}
    for row, text in enumerate(values.to_pylist()):
        value = None
        if text is not None:
            try:
                value = _cell(kind, text, fmt)
            except ValueError as error:
                words = quote(text.decode("utf-8", "backslashreplace"))
                faults[row] = Fault("", kind.name, f"{words} is {error}{_hint(kind, text, fmt)}")
        parsed.append(value)
    return parsed, faults


def _cell(kind: CqlType, text: bytes, fmt: TextFormat) -> Json:
    """Parse one cell, also in a loose spelling if the format accepts those."""
    decoder = SPELT_DECODER if fmt.accepts("json-text") else _DECODER
    if not fmt.accepts("collections"):
        return parse_cell(kind, text, decoder)
    try:
        value = parse_cell(kind, text, decoder)
        if isinstance(value, list | dict):
            return value
    except ValueError:
        pass
    return parse_loose(kind, text.decode())


def _hint(kind: CqlType, text: bytes, fmt: TextFormat) -> str:
    """Return which option would read a cell that was refused."""
    if fmt.accepts("collections") or len(text) > _HINT_BYTES_MAX:
        return ""

    def read(_: TextFormat) -> str:
        return json.dumps(parse_loose(kind, text.decode()), ensure_ascii=False)

    return hint([reading({"accept": "collections"}, fmt, read)])


def parse_cell(kind: CqlType, text: bytes, decoder: json.JSONDecoder = _DECODER) -> Json:
    """Parse one cell as JSON or as a CQL literal. Raises `ValueError` with one or both reasons."""
    try:
        return parse_json(text, decoder)
    except ValueError as no_json:
        try:
            return parse_literal(kind, text.decode())
        except UnicodeDecodeError:
            raise no_json from None
        except ValueError as no_literal:
            raise ValueError(f"{no_json}, and {no_literal}") from None


def encode_json(
    kind: CqlType, values: Sequence[Json], fmt: TextFormat, *, null_length: int
) -> Column:
    """Encode a column of parsed JSON; None becomes a cell of length `null_length`. A string for a
    nested value is parsed like a cell of text."""
    if not kind.scalar:
        values = [
            _of_text(kind, value, fmt) if isinstance(value, str) else value for value in values
        ]
    return _encode(kind, values, json_format(fmt), null_length)


def _of_text(kind: CqlType, text: str, fmt: TextFormat) -> Json:
    """Parse the nested value in a string, or return the string, which is then refused."""
    try:
        return _cell(kind, text.encode(), fmt)
    except ValueError:
        return text


@lru_cache
def json_format(fmt: TextFormat) -> TextFormat:
    """Return the format of values in JSON, which has its own spelling of numbers and booleans."""
    fmt = replace(fmt, decimal_sep=".", thousands_sep="")
    words = {word.lower() for word in fmt.true_words + fmt.false_words}
    return replace(
        fmt,
        true_words=fmt.true_words + ("true",) * ("true" not in words),
        false_words=fmt.false_words + ("false",) * ("false" not in words),
    )


def _encode(
    kind: CqlType, values: Sequence[Json], fmt: TextFormat, null_length: int = NULL_LENGTH
) -> Column:
    encode = _ENCODERS.get(kind.name, _encode_scalars)
    if None not in values:
        return encode(kind, values, fmt)
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    cells, faults = encode(kind, [value for value in values if value is not None], fmt)
    rows = np.flatnonzero(valid)
    faults = {int(rows[row]): fault for row, fault in faults.items()}
    return Column(cells.spread(valid, null_length), faults)


def _encode_scalars(kind: CqlType, values: Sequence[Json], fmt: TextFormat) -> Column:
    faults: Faults = {}
    if not set(map(type, values)) <= {str}:
        texts = []
        for row, value in enumerate(values):
            if isinstance(value, list | dict):
                value = _json_text(kind, value, fmt, row, faults)
            texts.append(("false", "true")[value] if isinstance(value, bool) else value)
        values = texts
    cells, bad = ENCODERS[kind.name](TextColumn.of(_binary(values)), fmt)
    return Column(cells, faults_of(bad, kind.name) | faults)


def _json_text(kind: CqlType, value: Json, fmt: TextFormat, row: int, faults: Faults) -> str:
    """Return an object or an array as its JSON if the format accepts that, or note a fault."""
    words = f"{_kind_of(value)} where a {kind.name} belongs"
    if kind.name in ("text", "varchar", "ascii"):
        if fmt.accepts("json-text"):
            try:
                if (text := strict_json(value)) is not None:
                    return text
                words = f"{_kind_of(value)} holds NaN or Infinity, which JSON does not have"
            except RecursionError:
                words = "its nesting is too deep"
        else:
            words += f"; {input_option('accept')} json-text keeps its JSON"
    faults[row] = Fault("", kind.name, words)
    return ""


def _binary(texts: Sequence[str]) -> pa.BinaryArray:
    try:
        return pa.array(texts, pa.string()).cast(pa.binary())
    except UnicodeEncodeError:
        # Half of a surrogate pair: its bytes are not UTF-8, and the value is refused for that.
        return pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.binary())


def _encode_list(kind: CqlType, values: Sequence[Json], fmt: TextFormat) -> Column:
    rows, faults = _of_kind(kind, values, list)
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    elements, bad = _encode(kind.of[0], list(chain.from_iterable(rows)), fmt)
    bad = null_faults(elements, kind.of[0], f"a {kind.name}") | bad
    return Column(collection_cells([elements], counts), lift(bad, counts) | faults)


def _encode_vector(kind: CqlType, values: Sequence[Json], fmt: TextFormat) -> Column:
    rows, faults = _of_kind(kind, values, list)
    for row, elements in enumerate(rows):
        if len(elements) != kind.size:
            reason = f"{len(elements)} elements where the vector has {kind.size}"
            faults.setdefault(row, Fault("", kind.name, reason))
            rows[row] = [None] * kind.size
    counts = np.full(len(rows), kind.size, np.int64)
    cells, bad = _encode(kind.of[0], list(chain.from_iterable(rows)), fmt)
    bad = null_faults(cells, kind.of[0], "a vector") | bad
    return Column(vector_cells(kind, cells, len(rows)), lift(bad, counts) | faults)


def _encode_map(kind: CqlType, values: Sequence[Json], fmt: TextFormat) -> Column:
    rows, faults = _of_kind(kind, values, dict, list)
    pairs: list[tuple[Json, Json]] = []
    counts = np.zeros(len(rows), np.int64)
    for row, value in enumerate(rows):
        entries = list(value.items()) if isinstance(value, dict) else value
        odd = [not isinstance(e, tuple | list) or len(e) != 2 for e in entries]
        if any(odd):
            reason = "not a [key, value] pair"
            faults.setdefault(row, Fault(f"[{odd.index(True)}]", kind.name, reason))
            continue
        pairs += entries
        counts[row] = len(entries)
    keys, bad_keys = _encode(kind.of[0], [key for key, _ in pairs], fmt)
    cells, bad = _encode(kind.of[1], [value for _, value in pairs], fmt)
    bad_keys = null_faults(keys, kind.of[0], "a key") | bad_keys
    bad = null_faults(cells, kind.of[1], "a map") | bad

    def path_of(entry: int, place: int) -> str:
        key = pairs[entry][0]
        return f"[{quote(key)}]" if isinstance(key, str) else f"[{place}][1]"

    found = lift(bad, counts, path_of) | lift(bad_keys, counts, lambda _, place: " key")
    return Column(collection_cells([keys, cells], counts), found | faults)


def _encode_tuple(kind: CqlType, values: Sequence[Json], fmt: TextFormat) -> Column:
    rows, faults = _of_kind(kind, values, list)
    size = len(kind.of)
    for row, elements in enumerate(rows):
        if len(elements) != size:
            reason = f"{len(elements)} elements where the tuple has {size}"
            faults.setdefault(row, Fault("", kind.name, reason))
            rows[row] = [None] * size
    columns = []
    for place, of in enumerate(kind.of):
        cells, bad = _encode(of, [elements[place] for elements in rows], fmt)
        columns.append(cells)
        for row, fault in bad.items():
            faults.setdefault(row, fault.within(f"[{place}]"))
    return Column(fields_cells(columns), faults)


def _encode_udt(kind: CqlType, values: Sequence[Json], fmt: TextFormat) -> Column:
    if fmt.accepts("collections"):
        values = [_by_position(kind, value) for value in values]
    rows, faults = _of_kind(kind, values, dict)
    known = set(kind.fields)
    for row, value in enumerate(rows):
        if not value.keys() <= known:
            value = rows[row] = _known_names(kind, value)
        if not value.keys() <= known:
            unknown = next(name for name in value if name not in known)
            reason = f"no field is named {quote(unknown)}; its fields are {', '.join(kind.fields)}"
            faults.setdefault(row, Fault("", kind.name, reason))
    columns = []
    for field, of in zip(kind.fields, kind.of, strict=True):
        cells, bad = _encode(of, [value.get(field) for value in rows], fmt)
        columns.append(cells)
        for row, fault in bad.items():
            faults.setdefault(row, fault.within(f".{field}"))
    return Column(fields_cells(columns), faults)


def _by_position(kind: CqlType, value: Json) -> Json:
    """Return an array as the object of a user-defined type; the last fields may be missing."""
    if not isinstance(value, list) or len(value) > len(kind.fields):
        return value
    return dict(zip(kind.fields, value, strict=False))


def _known_names(kind: CqlType, value: dict[str, Json]) -> dict[str, Json]:
    """Return an object with fields as names, where a name means only one field: in quotes, as
    SELECT JSON writes a name with capitals, or in another case."""
    lower: dict[str, list[str]] = {}
    for field in kind.fields:
        lower.setdefault(field.lower(), []).append(field)
    found: dict[str, Json] = {}
    for name, item in value.items():
        meant = plain_name(name)
        if meant not in kind.fields:
            alike = lower.get(meant.lower(), [])
            meant = alike[0] if len(alike) == 1 else name
        if meant in found or (meant != name and meant in value):
            return value  # two names for one field: the other spelling is refused
        found[meant] = item
    return found


def plain_name(name: str) -> str:
    """Return a name without the quotes that SELECT JSON puts around capitals."""
    if len(name) > 2 and name[0] == name[-1] == '"':
        return name[1:-1].replace('""', '"')
    return name


_ENCODERS: dict[str, Callable[[CqlType, Sequence[Json], TextFormat], Column]] = {
    "list": _encode_list,
    "set": _encode_list,
    "map": _encode_map,
    "tuple": _encode_tuple,
    "udt": _encode_udt,
    "vector": _encode_vector,
}


def _of_kind(kind: CqlType, values: Sequence[Json], *wanted: type) -> tuple[list[Any], Faults]:
    """Return the values, and faults for values of another JSON kind, which become empty."""
    if set(map(type, values)) <= set(wanted):
        return list(values), {}
    faults: Faults = {}
    rows = []
    words = " or ".join(_WORDS[of] for of in wanted)
    for row, value in enumerate(values):
        if isinstance(value, wanted):
            rows.append(value)
            continue
        if value == {} and kind.name == "set":  # an empty set in CQL
            rows.append([])
            continue
        rows.append(wanted[0]())
        faults[row] = Fault("", kind.name, f"{_kind_of(value)} where {words} belongs")
    return rows, faults


_WORDS = {list: "a JSON array", dict: "a JSON object", bool: "true or false"}


def _kind_of(value: Json) -> str:
    return quote(value) if isinstance(value, str) else _WORDS[type(value)]
