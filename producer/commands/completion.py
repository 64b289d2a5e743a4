"""Let a shell complete file names. click completes commands, options and choices.

See docs/how-to/install.md for how to set up a shell.
"""

from __future__ import annotations

import os
import re

import rich_click as click

#: Set by a shell that wants to complete a command line; click reads it.
VARIABLE = "_RINGHAUL_COMPLETE"
#: Words of a metavar whose value may be a file or a folder.
_PATHS = frozenset({"FILE", "DIR", "FOLDER", "PATH", "SOURCE"})


def is_completing() -> bool:
    """Return whether this process only answers a shell."""
    return VARIABLE in os.environ


def complete_paths(command: click.Command) -> None:
    """Complete file names also for text options that take a path or something else, such as a
    URL or -."""
    for parameter in command.params:
        words = re.findall("[A-Z]+", parameter.metavar or "")
        if parameter.type is click.STRING and not _PATHS.isdisjoint(words):
            parameter.type = click.Path(allow_dash=True)
