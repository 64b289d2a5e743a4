"""What a command tells its user about a job that it plans: plans return it, commands print it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Note(NamedTuple):
    """A line for the user. A quiet command shows only warnings."""

    text: str
    warns: bool = False  #: it may require action


def warnings(lines: Iterable[str]) -> list[Note]:
    """Return a warning for each line."""
    return [Note(line, warns=True) for line in lines]
