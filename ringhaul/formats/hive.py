"""Folders named after values, as Hive and Spark write them: `year=2023/region=north/`. Pure.

A name and a value are percent-encoded where they have characters that paths cannot or should not
have. `__HIVE_DEFAULT_PARTITION__` stands for null; a text that reads so is written with its first
character encoded, so that both remain distinct.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from ringhaul.errors import UsageError

NULL = "__HIVE_DEFAULT_PARTITION__"
#: What Hive and Spark encode, and what stores or shells treat in special ways.
_ENCODED = frozenset([*map(chr, range(0x20)), *"\"#%'*/:=?\\{}[]^\x7f"])


def folder_of(column: str, value: str | None) -> str:
    """Return the folder of a value, such as `region=north`; None: null."""
    if value == NULL:
        return f"{_encode(column)}=%5F{value[1:]}"
    return f"{_encode(column)}={NULL if value is None else _encode(value)}"


def values_of(folders: Iterable[str]) -> dict[str, str | None]:
    """Return the values in the names of folders, by column, in their order; None: null.

    Skips folders whose names are not of this form. Raises `UsageError` for a name that cannot be
    decoded, and for a column with two values.
    """
    found: dict[str, str | None] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if not equals or not name:
            continue
        column = _decode(name, folder)
        text = None if value == NULL else _decode(value, folder)
        if column in found and found[column] != text:
            raise UsageError(f"folder {folder}: {column} has another value in a folder above it")
        found[column] = text
    return found


def _encode(text: str) -> str:
    return "".join(f"%{ord(one):02X}" if one in _ENCODED else one for one in text)


def _decode(text: str, folder: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise UsageError(f"folder {folder}: what it encodes with % is not UTF-8") from None
