"""JSON values as text, like the fields of a CSV file: a nested value becomes its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from ringhaul.cql.nested import Json, parse_json, unique_names


class _Spelt(str):
    """A number with all of its digits."""

    __slots__ = ()


_DECODER = json.JSONDecoder(
    parse_float=_Spelt, parse_int=_Spelt, parse_constant=_Spelt, object_pairs_hook=unique_names
)


def parse_spelt(text: bytes) -> Json:
    """Parse like `parse_json`, but keep numbers distinct from strings, for `text_column`."""
    return parse_json(text, _DECODER)


def text_column(values: Sequence[Json]) -> tuple[pa.StringArray, dict[int, str]]:
    """Return values of `parse_spelt` as text, and by row why some have none; those are null."""
    texts: list[str | None] = []
    bad: dict[int, str] = {}
    for row, value in enumerate(values):
        if value is None or isinstance(value, str):
            texts.append(value)
            continue
        try:
            texts.append(_text(value))
        except RecursionError:
            texts.append(None)
            bad[row] = "its nesting is too deep"
    try:
        return pa.array(texts, pa.string()), bad
    except UnicodeEncodeError:
        for row, text in enumerate(texts):
            if text is not None and not _is_unicode(text):
                texts[row] = None
                bad[row] = "holds half of a surrogate pair, which is not a character"
        return pa.array(texts, pa.string()), bad


def _text(value: Json) -> str:
    """Return the JSON text of a value, without blanks."""
    if isinstance(value, _Spelt):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_text(name)}:{_text(item)}" for name, item in value.items())
        return f"{{{','.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
