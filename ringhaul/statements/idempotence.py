"""What a statement does when it is sent twice. Pure: looks at its text.

A statement that is not sure to leave the same after two times as after one is never sent again
once the server may have seen it. In doubt it is not sure: the text alone does not tell a counter's
or a list's `x = x + ?` from a set's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ringhaul.errors import UsageError


class Effect(NamedTuple):
    """What a statement does."""

    verb: str  #: select, insert, update, delete or batch
    repeatable: bool  #: two times are as good as one
    conditional: bool  #: it has an IF: its answer says whether it was applied
    #: It is of one partition: when too few of its replicas are alive, nothing was done.
    single: bool

    @property
    def reads(self) -> bool:
        """It changes nothing."""
        return self.verb == "select"


_VERBS = {"select", "insert", "update", "delete"}
#: What is no word of the statement: comments, texts, quoted names.
_NO_WORDS = re.compile(
    r"--[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)|\$\$.*?\$\$"
    r"|'(?:[^']++|'')*+'|\"(?:[^\"]++|\"\")*+\"",
    re.DOTALL,
)
#: Values that are other ones each time.
_CHANGING = re.compile(r"\b(?:now|uuid|current\w+)\s*\(")
#: `x = x + ...`, `x += ...`, `x = [..] + x`: true of counters and lists, and so taken of all. A
#: sign of a number follows `=`, `(`, `[` or a comma.
_ADDING = re.compile(r"[+-]\s*=|[\w\]})?'\"]\s*[+-]\s*[\w\[{(?'\":]")


def effect_of(statement: str) -> Effect:
    """What `statement` does. Raises `UsageError` for what is not about rows."""
    text = _NO_WORDS.sub(_stand_in, statement).strip().lower()
    words = re.findall(r"\w+", text)
    verb = words[0] if words else ""
    if verb == "begin":
        verb = "batch"
    elif verb not in _VERBS:
        raise UsageError(
            f"cannot run {verb.upper() or 'an empty statement'}; "
            "exec takes SELECT, INSERT, UPDATE, DELETE and batches of them"
        )
    if verb == "select":
        return Effect(verb, repeatable=True, conditional=False, single=True)
    conditional = _has_condition(words)
    repeatable = not conditional and not _CHANGING.search(text) and not _adds(text)
    single = verb != "batch" and "in" not in words
    return Effect(verb, repeatable, conditional, single)


def _stand_in(match: re.Match[str]) -> str:
    """Something quoted is an operand still; a comment is nothing."""
    return " " if match[0][0] in "-/" else "'x'"


def _has_condition(words: list[str]) -> bool:
    """An `IF` that is not the name of something: no key word is a name without quotes."""
    return "if" in words


def _adds(text: str) -> bool:
    """It adds to something, or takes an element out of a list."""
    for part in re.split(r"\b(?=(?:insert|update|delete)\b)", text):
        if part.startswith("update") and _ADDING.search(_between(part, "set", "where")):
            return True
        if part.startswith("delete") and "[" in _between(part, "delete", "from"):
            return True
    return False


def _between(text: str, begin: str, end: str) -> str:
    match = re.search(rf"\b{begin}\b(.*?)(?:\b{end}\b|$)", text, re.DOTALL)
    return match[1] if match else ""
