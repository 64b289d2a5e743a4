"""Follow the hint of a message: give the options that it names, as they are typed."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

#: One or more options with their values, and what comes out.
_READING = re.compile(
    r"(?P<options>--[a-z-]+ (?:'[^']*'|\S+)(?: --[a-z-]+ (?:'[^']*'|\S+))*) reads it"
    r"(?: as (?P<result>.+?))?(?: \((?P<note>[^)]*)\))?(?=$|; |, --)",
    re.DOTALL,
)


class Reading(NamedTuple):
    """One reading of a hint."""

    arguments: tuple[str, ...]
    result: str | None  #: what the hint says comes out


def readings(message: str) -> list[Reading]:
    """The readings that a message names."""
    return [
        Reading(tuple(shlex.split(found["options"])), found["result"])
        for found in _READING.finditer(message)
    ]


def options_named(message: str) -> set[str]:
    """The names of the options in a message."""
    return set(re.findall(r"--[a-z][a-z-]*", message))
