"""Read the values of Bulk Loader's settings, which are HOCON. Pure."""

from __future__ import annotations

import re

_ITEM = re.compile(r'\s*"((?:[^"\\]|\\.)*)"|([^,]+)')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
#: What HOCON has; a backslash before any other character stays.
_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|(["\\/bfnrt]))')
_SIZE = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)")
#: Powers of 1000, and with an i or a single letter of 1024.
_PREFIXES = ("", "k", "m", "g", "t")
_LONG_PREFIXES = ("", "kilo", "mega", "giga", "tera")
_LONG_BINARY_PREFIXES = ("", "kibi", "mebi", "gibi", "tebi")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def as_text(value: str) -> str:
    """Return the text of a value: without quotes around it, and without escapes.

    Bulk Loader puts quotes around a value that has none, so escapes count in each.
    """
    value = value.strip() or value
    quoted = _QUOTED.fullmatch(value)
    return _unescaped(quoted[1] if quoted else value)


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


def as_bytes(value: str) -> int | None:
    """Return a number of bytes such as `5`, `5K`, `5MB` or `5 mebibytes`; None: it is not one."""
    found = _SIZE.fullmatch(as_text(value))
    if found is None:
        return None
    unit = found[2].lower()
    factors = {"": 1, "b": 1, "byte": 1, "bytes": 1}
    for power in range(1, len(_PREFIXES)):
        letter, decimal, binary = _PREFIXES[power], 1000**power, 1024**power
        factors |= {f"{letter}b": decimal, letter: binary, f"{letter}i": binary}
        factors[f"{letter}ib"] = binary
        for ending in ("byte", "bytes"):
            factors[_LONG_PREFIXES[power] + ending] = decimal
            factors[_LONG_BINARY_PREFIXES[power] + ending] = binary
    return round(float(found[1]) * factors[unit]) if unit in factors else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2]), text
    )


def as_switches(value: str) -> dict[str, bool]:
    """Return the items of a map of true and false. Its braces may be missing."""
    value = value.strip()
    if value.startswith("{") and value.endswith("}"):
        value = value[1:-1]
    pairs = (re.split(r"[:=]", item, maxsplit=1) for item in value.split(","))
    return {as_text(pair[0]).strip(): as_bool(pair[1]) for pair in pairs if len(pair) == 2}
