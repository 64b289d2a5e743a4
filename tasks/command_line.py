"""How the command line spells options, in messages of commands and of workers.

`load` has the options that describe the format of input under their plain names. In `lookup` and
`exec` the plain names describe the output, and the options for the input values have a prefix.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ringhaul.ledger.kinds import JobKind
from ringhaul.option_names import Spelling, spell_options, spelling_options

#: Prefix of the options that describe the input values of `lookup` and `exec`.
VALUES_PREFIX = "values-"


def option_name(name: str, prefix: str = "") -> str:
    """Return an option's full name: `encoding` with the prefix `values-` is `--values-encoding`,
    `no-header` is `--no-values-header`."""
    switch = "no-" if name.startswith("no-") else ""
    return f"--{switch}{prefix}{name.removeprefix(switch)}"


def spell_as(kind: JobKind | None) -> None:
    """Let messages of this process name the options of a kind of job; None: of other commands."""
    spell_options(_spelling(_prefix(kind)))


@contextmanager
def spelled_as(kind: JobKind | None) -> Iterator[None]:
    """Let messages name the options of a kind of job for the length of the block."""
    with spelled_with(_prefix(kind)):
        yield


@contextmanager
def spelled_with(prefix: str) -> Iterator[None]:
    """Let messages name the options of input with this prefix for the length of the block."""
    with spelling_options(_spelling(prefix)):
        yield


def _prefix(kind: JobKind | None) -> str:
    return VALUES_PREFIX if kind is not None and kind.runs_statements else ""


def _spelling(prefix: str) -> Spelling:
    def spell(name: str, *, of_input: bool) -> str:
        return option_name(name, prefix if of_input else "")

    return spell
