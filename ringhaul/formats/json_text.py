"""JSON values as text, like the fields of a CSV file: a nested value becomes its JSON."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ringhaul.cql.nested import parse_json
from ringhaul.cql.spelt_json import SPELT_DECODER, Json, compact_json


def parse_spelt(text: bytes) -> Json:
    """Parse like `parse_json`, but keep numbers distinct from strings, for `text_column`."""
    return parse_json(text, SPELT_DECODER)


def text_column(values: Sequence[Json]) -> tuple[pa.StringArray, dict[int, str]]:
    """Return values of `parse_spelt` as text, null where there is none, and why, by row."""
    texts: list[str | None] = []
    bad: dict[int, str] = {}
    for row, value in enumerate(values):
        if value is None or isinstance(value, str):
            texts.append(value)
            continue
        try:
            texts.append(compact_json(value))
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


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
