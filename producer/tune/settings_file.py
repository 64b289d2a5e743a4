"""Put settings into the text of a `ringhaul.toml`, and keep the rest of it. Pure.

A line of the text is either changed here or kept as it is: comments, other settings and their order
are the user's. The result is read again, so that a way of writing TOML that is not understood here
(an inline table, a value of several lines) is refused and not damaged.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from ringhaul.errors import UsageError

#: What a comment of this program starts with: the next run replaces it.
MARK = "# tune:"
_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_ANY_TABLE = re.compile(r"\s*\[")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")


def edited(
    text: str, values: Mapping[str, str | int], comments: Mapping[str, Sequence[str]]
) -> str:
    """Return the text with these settings.

    `values`: dotted key (`load.strategy`) -> value. `comments`: section -> lines that say why, put
    below its header. Raises `UsageError` with the lines to write if the text cannot be changed.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(MARK)]
    for section in dict.fromkeys(key.partition(".")[0] for key in values):
        own = {key.partition(".")[2]: value for key, value in values.items() if _in(section, key)}
        lines = _with_section(lines, section, own, comments.get(section, ()))
    result = "\n".join(lines) + "\n"
    if not _says(result, text, values):
        raise UsageError(
            "the file is written in a way that this command does not change; write these lines "
            "into it yourself:\n" + section_text(values)
        )
    return result


def section_text(values: Mapping[str, str | int]) -> str:
    """Return settings as TOML."""
    lines: list[str] = []
    for section in dict.fromkeys(key.partition(".")[0] for key in values):
        lines.append(f"[{section}]")
        own = (key for key in values if _in(section, key))
        lines += [_line(key.partition(".")[2], values[key]) for key in own]
    return "\n".join(lines)


def _with_section(
    lines: Sequence[str], section: str, own: Mapping[str, str | int], comments: Sequence[str]
) -> list[str]:
    """Return the lines with the settings of one section."""
    noted = [f"{MARK} {comment}" for comment in comments]
    starts = [n for n, line in enumerate(lines) if (m := _TABLE.match(line)) and m[1] == section]
    if not starts:
        gap = [""] if lines and lines[-1].strip() else []
        return [*lines, *gap, f"[{section}]", *noted, *(_line(*pair) for pair in own.items())]
    first = starts[0] + 1
    end = next((n for n in range(first, len(lines)) if _ANY_TABLE.match(lines[n])), len(lines))
    left = dict(own)
    body: list[str] = []
    for line in lines[first:end]:
        key = _KEY.match(line)
        if key and key[1] in own:
            if key[1] in left:
                body.append(_line(key[1], left.pop(key[1])))
            continue
        body.append(line)
    # Put missing ones after the last setting: comments after it may be about the next section.
    last = next((n for n in range(len(body), 0, -1) if _is_setting(body[n - 1])), 0)
    body[last:last] = [_line(*pair) for pair in left.items()]
    return [*lines[:first], *noted, *body, *lines[end:]]


def _is_setting(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _line(name: str, value: str | int) -> str:
    return f"{name} = {json.dumps(value)}"


def _in(section: str, key: str) -> bool:
    return key.partition(".")[0] == section


def _says(result: str, before: str, values: Mapping[str, str | int]) -> bool:
    """Return whether the result has these values, and otherwise what was there before."""
    try:
        found, wanted = tomllib.loads(result), tomllib.loads(before)
    except tomllib.TOMLDecodeError:
        return False
    for key, value in values.items():
        section, _, name = key.partition(".")
        table: Any = wanted.setdefault(section, {})
        if not isinstance(table, dict):
            return False
        table[name] = value
    return bool(found == wanted)
