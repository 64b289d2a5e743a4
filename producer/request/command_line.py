"""The command line of the running command, kept with its job for later readers.

It is what the user typed, so that it runs again. Secrets are never options, and secrets in a URL
are masked.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import rich_click as click

from config.secrets import mask
from ringhaul.plain_text import as_line

#: Label of a job that holds its command line. Jobs of older versions have none.
COMMAND_LABEL = "command"
#: Longer command lines are cut: labels are among what every look at the job reads.
CHARS_MAX = 1000
#: Key of the words in a context's `meta`.
_WORDS = "ringhaul.words"


def keep_words(context: click.Context, words: Sequence[str]) -> None:
    """Keep what stands after a command's name, before click takes it apart."""
    context.meta[_WORDS] = tuple(words)


def command_line(context: click.Context | None = None) -> str:
    """Return the command line of `context` (default: the running command); empty if there is no
    command, as when a program makes the job."""
    context = context or click.get_current_context(silent=True)
    if context is None or _WORDS not in context.meta:
        return ""
    words = ("ringhaul", context.info_name or "", *context.meta[_WORDS])
    text = as_line(" ".join(shlex.quote(mask(word)) for word in words))
    return text if len(text) <= CHARS_MAX else f"{text[:CHARS_MAX]}..."
