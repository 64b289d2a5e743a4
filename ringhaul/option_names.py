"""How messages call the options that say how input is written.

`load` has them by their plain names. In `lookup` and `exec` those are of the answers, and what is
about the values has a prefix.
"""

from __future__ import annotations

#: In front of the names of options about the values of `lookup` and `exec`.
VALUES_PREFIX = "values-"


def option_name(name: str, prefix: str) -> str:
    """`--encoding` without a prefix; with `values-`: `--values-encoding`, `--no-values-header`."""
    switch = "no-" if name.startswith("no-") else ""
    return f"--{switch}{prefix}{name.removeprefix(switch)}"
