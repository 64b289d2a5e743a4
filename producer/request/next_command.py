"""Suggest the user's next command in messages.

It must find the job on the same broker and cluster, so it repeats this command's connection flags.
Settings from the environment and the default files apply to the next command anyway.
"""

from __future__ import annotations

import shlex

import rich_click as click

from config.secrets import mask_value
from producer.request.settings import CONNECTION_FLAGS


def next_command(command: str) -> str:
    """Return `ringhaul COMMAND` (such as `resume JOB`) with the running command's --config and
    --broker. Only `resume` takes, and gets, its flags about the cluster."""
    context = click.get_current_context(silent=True)
    given = {} if context is None else context.params
    flags = list(CONNECTION_FLAGS) if command.startswith("resume ") else ["broker"]
    names = {flag: f"--{flag.replace('_', '-')}" for flag in flags} | {"config_file": "--config"}
    words = ["ringhaul", command]
    for flag, name in names.items():
        if given.get(flag) is not None:
            words += [name, shlex.quote(mask_value(str(given[flag])))]
    return " ".join(words)
