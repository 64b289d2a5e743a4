"""Options in messages: the engine says what an option sets, its program how users spell that.

`lookup` and `exec` have options of one meaning twice: for the values that they read, and for the
rows that they write. So the engine names an option as one of the input, or as one of the job.

An option is spelled when its message is made: the texts of rejects and errors that the ledger
keeps need no further step when they are shown. A process does the work of one job at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Spelling(Protocol):
    """How a program spells its options."""

    def __call__(self, name: str, *, of_input: bool) -> str:
        """Return the full name of an option, such as `null` or `no-header`. `of_input`: it
        describes the format of input."""


def _plain(name: str, *, of_input: bool) -> str:
    return name


_spelling: Spelling = _plain


def job_option(name: str) -> str:
    """Return how users spell an option of a job or of its output, such as `consistency`."""
    return _spelling(name, of_input=False)


def input_option(name: str) -> str:
    """Return how users spell an option about the format of input, such as `encoding`."""
    return _spelling(name, of_input=True)


def spell_options(spelling: Spelling) -> None:
    """Let messages of this process spell options like this from now on."""
    global _spelling
    _spelling = spelling


@contextmanager
def spelling_options(spelling: Spelling) -> Iterator[None]:
    """Let messages of this process spell options like this for the length of the block."""
    before = _spelling
    spell_options(spelling)
    try:
        yield
    finally:
        spell_options(before)
