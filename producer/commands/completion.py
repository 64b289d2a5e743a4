"""Let a shell complete the names of files. Commands, options and choices are click's part.

See docs/install.md for how a shell is set up.
"""

from __future__ import annotations

import os
import re

import rich_click as click

#: Set by a shell that wants to complete a command line; click reads it.
VARIABLE = "_RINGHAUL_COMPLETE"
#: What a metavar says if the value may be a file or a folder.
_PATHS = frozenset({"FILE", "DIR", "FOLDER", "PATH", "SOURCE"})


def is_completing() -> bool:
    """Return whether this process only answers a shell."""
    return VARIABLE in os.environ


def complete_paths(command: click.Command) -> None:
    """Make files be completed where a path is one of what a text may be, such as a URL or -."""
    for parameter in command.params:
        words = re.findall("[A-Z]+", parameter.metavar or "")
        if parameter.type is click.STRING and not _PATHS.isdisjoint(words):
            parameter.type = click.Path(allow_dash=True)
