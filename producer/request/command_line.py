"""The command line of the running command, kept with its job for those who look at it later.

It is made of the options that the user gave, and not of the arguments of the process: secrets are
never options, and what a URL holds of them is masked.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

import rich_click as click
from click.core import ParameterSource

from config.secrets import mask
from ringhaul.plain_text import as_line

#: The same among a job's labels. Jobs of before have none.
COMMAND_LABEL = "command"
#: Longer command lines are cut: labels are among what every look at the job reads.
CHARS_MAX = 1000


def command_line(context: click.Context | None = None) -> str:
    """Return the command line of a command that was parsed, or of the running one; empty if none
    is, as when a job is made by a program."""
    context = context or click.get_current_context(silent=True)
    if context is None:
        return ""
    words = ["ringhaul", context.info_name or "", *_words(context)]
    text = as_line(" ".join(words))
    return text if len(text) <= CHARS_MAX else f"{text[:CHARS_MAX]}..."


def _words(context: click.Context) -> Iterator[str]:
    options = [one for one in context.command.params if isinstance(one, click.Option)]
    arguments = [one for one in context.command.params if isinstance(one, click.Argument)]
    for argument in arguments:
        yield from _values(context.params.get(argument.name or ""))
    for option in options:
        name = option.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params.get(name)
        if option.is_flag:
            names = option.opts if value else option.secondary_opts
            yield from [max(names, key=len)] if names else []
            continue
        for word in _values(value):
            yield max(option.opts, key=len)
            yield word


def _values(value: object) -> Iterator[str]:
    if value is None:
        return
    for one in value if isinstance(value, tuple) else (value,):
        text = os.fspath(one) if isinstance(one, os.PathLike) else str(one)
        yield shlex.quote(mask(text))
