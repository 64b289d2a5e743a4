"""Read the values of Bulk Loader's settings, which are HOCON. Pure."""

from __future__ import annotations

import re

_ITEM = re.compile(r'\s*"((?:[^"\\]|\\.)*)"|([^,]+)')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def as_text(value: str) -> str:
    """Return the text of a value: without quotes around it, and without their escapes."""
    value = value.strip() or value
    if len(value) > 1 and value[0] == value[-1] == '"':
        return _unescaped(value[1:-1])
    return value


def as_list(value: str) -> list[str]:
    """Return the items of a list. Its brackets may be missing."""
    value = value.strip()
    if value.startswith("[") and value.endswith("]"):
        value = value[1:-1]
    return [
        _unescaped(found[1]) if found[1] is not None else found[2].strip()
        for found in _ITEM.finditer(value)
        if found[1] is not None or found[2].strip()
    ]


def as_bool(value: str) -> bool:
    return as_text(value).lower() in ("true", "yes", "on")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)
