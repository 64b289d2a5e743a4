"""Parse a block of JSON Lines into columns of values: one object a line, columns by name.

A record is a line, whatever it holds: a line end inside a JSON string is written `\\n`. Lines are
found by the CSV scanner, with a dialect without quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringhaul.cql.column import quote
from ringhaul.cql.hints import western_hint
from ringhaul.cql.nested import parse_json
from ringhaul.cql.spelt_json import Json
from ringhaul.formats.csv_read import FieldReject, decode_bytes
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.json_documents import without_comments
from ringhaul.formats.split import Block
from ringhaul.option_names import input_option


class JsonBlock(NamedTuple):
    """The values of a block's good records."""

    #: One per wanted name: values as `parse_json` returns them, None if null or missing.
    columns: list[list[Json]]
    #: Index in the block of each row's record; ascending.
    records: npt.NDArray[np.int64]
    rejects: list[FieldReject]


def line_dialect(dialect: CsvDialect) -> CsvDialect:
    """Return `dialect` without quotes, escapes and comments: JSON has its own."""
    return replace(dialect, quote=None, escape=None, comment=None)


def record_texts(
    block: Block, dialect: CsvDialect, records: Iterable[int] | None = None
) -> Iterator[bytes]:
    """Yield the text of each record of a block, or of `records`, in UTF-8 (not checked)."""
    starts, ends = block.starts.tolist(), block.ends.tolist()
    decode = dialect.decoding == "block"
    for record in range(len(starts)) if records is None else records:
        text = block.data[starts[record] : ends[record]]
        yield decode_bytes(text, dialect.encoding) if decode else text


def plain_json(text: bytes, dialect: CsvDialect) -> bytes:
    """Return the text of a record without its comments."""
    return without_comments(text) if dialect.json_layout == "commented" else text


def json_hint(text: bytes, reason: str, dialect: CsvDialect) -> str:
    """Return which option may read a record that is not JSON; empty if none would."""
    option = input_option("json-layout")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return western_hint(text, error.start, input_option("encoding"))
    if dialect.json_layout == "commented":
        return ""
    if text.lstrip()[:2] in (b"//", b"/*") or text.lstrip()[:1] == b"#":
        return f"; {option} commented reads JSON with comments"
    if dialect.json_layout == "documents":
        return ""
    if text[:1] == b"\x1e":
        return f"; {option} documents reads JSON with record separators"
    if "Extra data" in reason:
        return f"; {option} documents reads several objects on a line"
    if text.strip() in (b"{", b"}", b"},") or text.rstrip().endswith(b","):
        return f"; {option} documents reads objects over several lines"
    return ""


def read_objects(
    block: Block,
    dialect: CsvDialect,
    wanted: Sequence[str],
    ignored: Collection[str] | None,
    *,
    chosen: npt.NDArray[np.bool_] | None = None,
    parse: Callable[[bytes], Json] = parse_json,
    paths: Collection[str] = (),
) -> JsonBlock:
    """Read the names `wanted` from a block's objects.

    Rejects records that are not a JSON object, and records with a name that is neither wanted nor
    in `ignored` (None: any name is allowed). `chosen`: bool per record, False skips it. `parse`: a
    parser like `parse_json`. `paths`: names that lead to a value within objects, as `user.name`
    does; each value on the way must be an object, or missing.
    """
    steps = {name: name.split(".") for name in paths}
    rows: list[dict[str, Json]] = []
    records: list[int] = []
    rejects: list[FieldReject] = []
    known = None if ignored is None else {*wanted, *ignored}
    numbers = range(len(block.starts)) if chosen is None else np.flatnonzero(chosen).tolist()
    for record, text in zip(numbers, record_texts(block, dialect, numbers), strict=True):
        try:
            row = parse(plain_json(text, dialect))
        except ValueError as error:
            hint = json_hint(text, str(error), dialect)
            rejects.append(FieldReject(record, None, f"{error}{hint}", None))
            continue
        if not isinstance(row, dict):
            rejects.append(FieldReject(record, None, "not a JSON object", None))
            continue
        if known is not None and not row.keys() <= known:
            name = next(name for name in row if name not in known)
            reason = f"no column is named {quote(name)}"
            rejects.append(FieldReject(record, None, reason, None))
            continue
        if steps and (barred := _barred(row, steps)) is not None:
            rejects.append(FieldReject(record, *barred, None))
            continue
        rows.append(row)
        records.append(record)
    columns = [
        [inner_value(row, steps[name]) for row in rows]
        if name in steps
        else [row.get(name) for row in rows]
        for name in wanted
    ]
    nulls = null_texts(dialect)
    if nulls:  # most loads name none
        columns = [with_nulls(column, nulls) for column in columns]
    return JsonBlock(columns, np.array(records, np.int64), rejects)


def null_texts(dialect: CsvDialect) -> frozenset[str]:
    """Return the texts that mean null in a member of a record, and not deeper within it.

    The default of CSV, the empty field, has no counterpart: `""` is a text, unless `null_quoted`
    says that quotes make no difference.
    """
    usual = dialect.null_strings == CsvDialect().null_strings and not dialect.null_quoted
    return frozenset() if usual else frozenset(dialect.null_strings)


def with_nulls(values: list[Json], nulls: frozenset[str]) -> list[Json]:
    """Return values with None for each string or number that is one of the texts."""
    return [None if isinstance(value, str) and value in nulls else value for value in values]


def inner_value(row: Json, steps: Sequence[str]) -> Json:
    """Return the value at the end of a path into an object; None if there is none."""
    for step in steps:
        if not isinstance(row, dict):
            return None
        row = row.get(step)
    return row


def _barred(row: Json, paths: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
    """Return a path that is blocked by a value that is not an object, and the reason."""
    for name, steps in paths.items():
        for count in range(1, len(steps)):
            found = inner_value(row, steps[:count])
            if found is not None and not isinstance(found, dict):
                way = ".".join(steps[:count])
                return name, f"{quote(way)} is not an object, so there is no {name} in it"
    return None
