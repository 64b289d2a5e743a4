"""Flower's own options, in its form and checked.

Flower takes `--port=5556` only, ignores an option that it does not know, and ends with a traceback
for a value that it cannot read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ringhaul.errors import UsageError

#: What Flower's environment variables begin with.
_VARIABLE = "FLOWER_"
_TRUE, _FALSE = ("y", "yes", "t", "true", "on", "1"), ("n", "no", "f", "false", "off", "0")
#: Options that name a file which Flower reads.
_FILES = ("conf", "certfile", "keyfile", "ca_certs")


def in_its_form(arguments: Sequence[str], options: Any) -> list[str]:
    """Return the arguments with each value joined to its option by `=`.

    `options`: Flower's, as tornado holds them. Raises `UsageError` for an option that Flower does
    not have, a value that it cannot read, and anything else.
    """
    found: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise UsageError(f"flower takes options only, not {word!r}")
        if name not in options:
            raise UsageError(f"flower has no option {word.partition('=')[0]}")
        option = _option(options, name)
        if not equals and option.type is not bool:
            value = next(words, "")
            if not value or (value.startswith("-") and not _is_number(value)):
                raise UsageError(f"--{name} needs a value: --{name}=VALUE")
        elif not equals:
            value = "true"
        found.append(f"--{name}={_checked(option, f'--{name}', value)}")
    return found


def check_variables(environment: Mapping[str, str], options: Any) -> None:
    """Raise `UsageError` for a variable `FLOWER_OPTION` whose value Flower cannot read."""
    for variable, value in environment.items():
        name = variable.removeprefix(_VARIABLE).lower()
        if variable.startswith(_VARIABLE) and name in options:
            _checked(_option(options, name), variable, value)


def _option(options: Any, name: str) -> Any:
    """Return tornado's record of an option, which has no public name."""
    return options._options[options._normalize_name(name)]


def _checked(option: Any, shown: str, value: str) -> str:
    """Return a value as both of Flower's parsers read it: one takes `off` for true."""
    if option.type is bool:
        if value.lower() not in (*_TRUE, *_FALSE):
            raise UsageError(f"{shown}: not true or false: {value!r}")
        return "true" if value.lower() in _TRUE else "false"
    before = option._value
    try:
        option.parse(value)
    except Exception as error:  # each type raises its own
        raise UsageError(f"{shown}: Flower cannot read {value!r} as its value") from error
    finally:
        option._value = before
    if (
        option.name.replace("-", "_") in _FILES
        and value != os.devnull
        and not Path(value).is_file()
    ):
        raise UsageError(f"{shown}: no such file: {value}")
    return value


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()
