"""JSON whose numbers keep their digits and stay distinct from strings, so that a value can be
written again as its JSON text."""

from __future__ import annotations

import json
from typing import Any

from ringhaul.cql.column import quote

#: A value from a JSON decoder, whose numbers are also `str`.
Json = Any


class Spelt(str):
    """A number with all of its digits."""

    __slots__ = ()


def unique_names(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object of these pairs. Raises `ValueError` for a name that occurs twice, as either
    value may be meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        # `found` has the names in order of first occurrence: the first mismatch is a repetition.
        order = zip(found, pairs, strict=False)
        twice = next((name for first, (name, _) in order if first != name), pairs[len(found)][0])
        raise ValueError(f"the name {quote(twice)} occurs twice in an object")
    return found


SPELT_DECODER = json.JSONDecoder(
    parse_float=Spelt, parse_int=Spelt, parse_constant=Spelt, object_pairs_hook=unique_names
)


def compact_json(value: Json) -> str:
    """Return the JSON text of a value, without blanks. Raises `RecursionError`."""
    if isinstance(value, Spelt):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(compact_json, value))}]"
    if isinstance(value, dict):
        pairs = (f"{compact_json(name)}:{compact_json(item)}" for name, item in value.items())
        return f"{{{','.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)


def strict_json(value: Json) -> str | None:
    """Return the JSON text of a value as `compact_json` does; None: it holds NaN or an infinity,
    for which JSON has no text. Raises `RecursionError`."""
    text = compact_json(value)
    if "NaN" in text or "Infinity" in text:  # perhaps only in a string
        try:
            json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
        except ValueError:
            return None
    return text


def _refuse(word: str) -> None:
    raise ValueError(word)
