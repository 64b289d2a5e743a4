"""Decide whether a statement may be sent twice. Pure: looks at its text.

A statement that may not be idempotent is never sent again once the server may have seen it. In
doubt it counts as not idempotent: `x = x + ?` looks alike for a counter, a list and a set.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ringhaul.errors import UsageError


class Effect(NamedTuple):
    """The effect of running a statement."""

    verb: str  #: select, insert, update, delete or batch
    repeatable: bool  #: idempotent: running it twice equals running it once
    conditional: bool  #: has an IF: the response says whether it was applied
    #: Concerns one partition: if too few of its replicas are alive, nothing was done.
    single: bool

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.verb == "select"


_VERBS = {"select", "insert", "update", "delete"}
#: Text without keywords: comments, strings, quoted names.
_NO_WORDS = re.compile(
    r"--[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)|\$\$.*?\$\$"
    r"|'(?:[^']++|'')*+'|\"(?:[^\"]++|\"\")*+\"",
    re.DOTALL,
)
#: Functions that return another value each time.
_CHANGING = re.compile(r"\b(?:now|uuid|current\w+)\s*\(")
#: `x = x + ...`, `x += ...`, `x = [..] + x`: not idempotent for counters and lists, so never
#: trusted. The sign of a number follows `=`, `(`, `[` or a comma instead.
_ADDING = re.compile(r"[+-]\s*=|[\w\]})?'\"]\s*[+-]\s*[\w\[{(?'\":]")


#: The effect of a SELECT.
READ = Effect("select", repeatable=True, conditional=False, single=True)


def effect_of(statement: str) -> Effect:
    """Return what `statement` does. Raises `UsageError` if it is not about rows."""
    text = _NO_WORDS.sub(_stand_in, statement).strip().lower()
    words = re.findall(r"\w+", text)
    verb = words[0] if words else ""
    if verb == "begin":
        verb = "batch"
    elif verb not in _VERBS:
        raise UsageError(
            f"cannot run {verb.upper() or 'an empty statement'}; "
            "exec takes SELECT, INSERT, UPDATE, DELETE and batches of them, cqlsh any statement"
        )
    if verb == "select":
        return READ
    conditional = _has_condition(words)
    repeatable = not conditional and not _CHANGING.search(text) and not _adds(text)
    single = verb != "batch" and "in" not in words
    return Effect(verb, repeatable, conditional, single)


def _stand_in(match: re.Match[str]) -> str:
    """Replace a quoted text by an operand, and a comment by a space."""
    return " " if match[0][0] in "-/" else "'x'"


def _has_condition(words: list[str]) -> bool:
    """Return whether there is an `IF`; no unquoted name can be a key word."""
    return "if" in words


def _adds(text: str) -> bool:
    """Return whether a statement adds to a value, or removes an element of a list."""
    for part in re.split(r"\b(?=(?:insert|update|delete)\b)", text):
        if part.startswith("update") and _ADDING.search(_between(part, "set", "where")):
            return True
        if part.startswith("delete") and "[" in _between(part, "delete", "from"):
            return True
    return False


def _between(text: str, begin: str, end: str) -> str:
    match = re.search(rf"\b{begin}\b(.*?)(?:\b{end}\b|$)", text, re.DOTALL)
    return match[1] if match else ""
