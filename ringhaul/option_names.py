"""Names, in messages, of the options that describe the format of input.

`load` has them under their plain names. In `lookup` and `exec` the plain names describe the output,
and the options for the input values have a prefix.
"""

from __future__ import annotations

#: Prefix of the options that describe the input values of `lookup` and `exec`.
VALUES_PREFIX = "values-"


def option_name(name: str, prefix: str) -> str:
    """Return an option's full name: `encoding` with the prefix `values-` is `--values-encoding`,
    `no-header` is `--no-values-header`."""
    switch = "no-" if name.startswith("no-") else ""
    return f"--{switch}{prefix}{name.removeprefix(switch)}"
