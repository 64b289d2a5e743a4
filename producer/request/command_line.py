"""The command line of the running command, kept with its job for later readers.

It is built from the options that the user gave, not from the arguments of the process. Secrets are
never options, and secrets in a URL are masked.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

import rich_click as click
from click.core import ParameterSource

from config.secrets import mask
from ringhaul.plain_text import as_line

#: Label of a job that holds its command line. Jobs of older versions have none.
COMMAND_LABEL = "command"
#: Longer command lines are cut: labels are among what every look at the job reads.
CHARS_MAX = 1000


def command_line(context: click.Context | None = None) -> str:
    """Return the command line of `context` (default: the running command); empty if there is no
    command, as when a program makes the job."""
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
