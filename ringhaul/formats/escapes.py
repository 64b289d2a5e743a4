"""Meaning of the characters after the escape character, in each style of escapes.

Each style follows a program that writes dumps, letter by letter: a letter that one program reads as
a control character is a plain letter to another:

| style        | letters                       | numbers                              |
|--------------|-------------------------------|--------------------------------------|
| `plain`      | none                          | none                                 |
| `mysql`      | `0 b n r t Z`                 | none; `0` is NUL                     |
| `postgresql` | `b f n r t v`                 | 1 to 3 octal digits, `x` and 1 or 2 hex |
| `hive`       | `n r`                         | none                                 |
| `c`          | `b f n r t v Z`               | as `postgresql`                      |
| `quoted`     | none                          | none                                 |

In `quoted`, which is what Bulk Loader does, the escape character counts within quotes alone, and
before a quote or another escape character; anywhere else it is an ordinary character.

Any other character after the escape character stands for itself. Sources: MySQL's manual on LOAD
DATA, PostgreSQL's on COPY, and what Hive's LazySimpleSerDe undoes. A number is one byte; a value
is rejected on conversion if its bytes are not UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PLAIN = "plain"
#: Escapes are within quotes alone, before a quote or an escape character.
QUOTED = "quoted"

_CONTROLS = {"b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LETTERS: Mapping[str, Mapping[str, int]] = {
    PLAIN: {},
    "c": _CONTROLS | {"Z": 26},
    "mysql": {"0": 0, "b": 8, "n": 10, "r": 13, "t": 9, "Z": 26},
    "postgresql": _CONTROLS,
    "hive": {"n": 10, "r": 13},
    QUOTED: {},
}
#: Styles in which digits, and x before digits, stand for the byte of that number.
_WITH_NUMBERS = ("c", "postgresql")
STYLES = tuple(_LETTERS)


def reads_numbers(style: str) -> bool:
    """Return whether octal and hexadecimal numbers stand for bytes."""
    return style in _WITH_NUMBERS


def has_meaning(character: str, style: str) -> bool:
    """Return whether the character stands for another one after the escape character."""
    number = reads_numbers(style) and (character in "01234567" or character == "x")
    return number or character in _LETTERS[style]


@lru_cache
def meanings(style: str) -> npt.NDArray[np.uint8]:
    """Return the byte that each byte after the escape character stands for, shape (256,)."""
    import numpy as np  # not for commands that only name the styles

    table = np.arange(256, dtype=np.uint8)
    for letter, byte in _LETTERS[style].items():
        table[ord(letter)] = byte
    table.flags.writeable = False
    return table


@lru_cache
def spellings(style: str, escape: str) -> Mapping[str, str]:
    """Return how to write control characters with a letter, and NUL if numbers are read.

    Maps each character to its full spelling, escape character included.
    """
    spelt = {chr(byte): escape + letter for letter, byte in _LETTERS[style].items()}
    if reads_numbers(style):
        # All three digits: a shorter number would absorb a digit that follows it.
        spelt["\0"] = f"{escape}000"
    return spelt
