"""Commands that a user may give next, as the messages of a command name them.

They find the job where this command has it: what was said by flags is said again. Settings of the
environment and of the usual files hold for the next command, too.
"""

from __future__ import annotations

import shlex

import rich_click as click

from config.secrets import mask_value
from producer.request.settings import CONNECTION_FLAGS


def next_command(command: str) -> str:
    """`ringhaul COMMAND`, such as of `resume JOB`, with the --config and --broker of the running
    command; and with its flags about the cluster where the next one takes them: `resume` alone."""
    context = click.get_current_context(silent=True)
    given = {} if context is None else context.params
    flags = list(CONNECTION_FLAGS) if command.startswith("resume ") else ["broker"]
    names = {flag: f"--{flag.replace('_', '-')}" for flag in flags} | {"config_file": "--config"}
    words = ["ringhaul", command]
    for flag, name in names.items():
        if given.get(flag) is not None:
            words += [name, shlex.quote(mask_value(str(given[flag])))]
    return " ".join(words)
