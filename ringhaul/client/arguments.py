"""Keyword arguments become options of a command line."""

from __future__ import annotations

import difflib
import inspect
import os
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from ringhaul.client.errors import UsageError
from ringhaul.client.options import OPTIONS

#: Hint in `options` -> for people.
_KIND_WORDS = {
    "Flag": "True or False",
    "Switch": "True or False",
    "Value": "a text or a number",
    "Path": "a path",
    "Listed": "a text, or a list",
    "Repeated": "a text, or a list",
    "int": "a number",
    "float": "a number",
}
#: Keywords that are given elsewhere -> where.
_ELSEWHERE = {
    "broker": "give it to Client(...)",
    "config": "give it to Client(...)",
    "contact_points": "give it to Client(...)",
    "local_dc": "give it to Client(...)",
    "password": "give it to Client(...)",
    "password_file": "give it to Client(...)",
    "port": "give it to Client(...)",
    "secure_connect_bundle": "give it to Client(...)",
    "user": "give it to Client(...)",
    "detach": "use submit_load, submit_verify or submit_unload, which return a Job",
    "dry_run": "use plan_load or plan_unload, which return a Plan",
    "json": "results are always typed records",
    "quiet": "nothing is shown unless progress= is given",
}


_Call = TypeVar("_Call", bound=Callable[..., Any])


def takes_options(command: str) -> Callable[[_Call], _Call]:
    """Return a decorator that lists the options of a command in the help of a method."""

    def listed(call: _Call) -> _Call:
        kinds = OPTIONS[command].__annotations__.items()
        lines = [f"    {name}: {_kind_words(hint)}" for name, hint in sorted(kinds)]
        head = f"Options, which `ringhaul {command} --help` explains:"
        call.__doc__ = "\n".join([inspect.cleandoc(call.__doc__ or ""), "", head, "", *lines])
        return call

    return listed


def _kind_words(hint: object) -> str:
    """Return the kind of an option for people, from its hint, which is not evaluated yet."""
    text = str(getattr(hint, "__forward_arg__", hint))
    if text.startswith("Literal["):
        return " or ".join(text[len("Literal[") : -1].split(", "))
    return _KIND_WORDS.get(text, text)


def option_arguments(command: str, options: Mapping[str, object]) -> list[str]:
    """Return the options of a command line, such as `--skip-rows=2`. None leaves an option out.

    Raises `UsageError` for an option that the command does not have, or a value of another type.
    """
    known = _kinds(command)
    found = []
    for keyword, value in options.items():
        if keyword not in known:
            raise UsageError(_unknown(command, keyword, known))
        if value is not None:
            found += _spelled(keyword, known[keyword], value)
    return found


@cache
def _kinds(command: str) -> dict[str, str]:
    """Return keyword -> flag, switch, value, listed, repeated or int of a command's options."""
    hints = typing.get_type_hints(OPTIONS[command], include_extras=True)
    return {
        keyword: next(iter(getattr(hint, "__metadata__", ())), _plain_kind(hint))
        for keyword, hint in hints.items()
    }


def _plain_kind(hint: object) -> str:
    return "number" if hint in (int, float) else "value"


def _unknown(command: str, keyword: str, known: Mapping[str, str]) -> str:
    if where := _ELSEWHERE.get(keyword):
        return f"{command} takes no option {keyword!r} here: {where}"
    close = difflib.get_close_matches(keyword, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f": see `ringhaul {command} --help`"
    return f"{command} has no option {keyword!r}{hint}"


def _spelled(keyword: str, kind: str, value: object) -> list[str]:
    name = keyword.replace("_", "-")
    if kind in ("flag", "switch"):
        if not isinstance(value, bool):
            raise UsageError(f"{keyword} is True or False, not {value!r}")
        if kind == "flag":
            return [f"--{name}"] if value else []
        return [f"--{name}" if value else f"--no-{name}"]
    if kind == "repeated":
        return [f"--{name}={_text(keyword, one)}" for one in _items(value)]
    if kind == "listed":
        return [f"--{name}={','.join(_text(keyword, one) for one in _items(value))}"]
    if kind == "number" and not isinstance(value, int | float):
        raise UsageError(f"{keyword} is a number, not {value!r}")
    return [f"--{name}={_text(keyword, value)}"]


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def _text(keyword: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{keyword} is a text or a number, not {value!r}")
    text = str(value)
    if "\0" in text:
        raise UsageError(f"{keyword} contains a NUL, which no command line can hold")
    return text
