"""Check values that `worker` and `beat` pass on to Celery, which would end with a traceback."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from ringhaul.errors import UsageError

#: Settings of click for commands that pass options on.
PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True}


def check_passed_on(options: Sequence[str]) -> None:
    """Raise `UsageError` for an option whose value Celery could not use."""
    for names, check in _CHECKS.items():
        for name, value in _values(options, names.split()):
            if value and (why := check(value)):
                raise UsageError(f"{name}: {why}")


def _values(options: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each use of an option under one of its names, with its value; empty if it has none."""
    found: list[tuple[str, str]] = []
    for word, following in zip_longest(options, options[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        if name in names:
            found.append((name, value if equals else following))
        elif word[:2] in names and not word.startswith("--"):
            found.append((word[:2], word[2:]))
    return found


def _why_no_file(path: str) -> str:
    """Return why a file cannot be written; empty if it may."""
    folder = Path(path).parent
    if Path(path).is_dir():
        return f"{path} is a folder"
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"folder {folder} is not writable"


def _why_no_user(name: str) -> str:
    from celery.platforms import parse_uid

    try:
        parse_uid(name)
    except KeyError:
        return f"this host has no user {name}"
    return ""


def _why_no_group(name: str) -> str:
    from celery.platforms import parse_gid

    try:
        parse_gid(name)
    except KeyError:
        return f"this host has no group {name}"
    return ""


def _why_no_scheduler(name: str) -> str:
    from celery.utils.imports import load_extension_class_names, symbol_by_name

    aliases = dict(load_extension_class_names("celery.beat_schedulers"))
    try:
        symbol_by_name(name, aliases=aliases)
    except (ImportError, AttributeError, ValueError) as error:
        return f"there is no scheduler {name} ({error})"
    return ""


#: Names of an option -> why a value cannot be used; empty if it can.
_CHECKS: Mapping[str, Callable[[str], str]] = {
    "--pidfile": _why_no_file,
    "--logfile -f": _why_no_file,
    "--statedb": _why_no_file,
    "--uid": _why_no_user,
    "--gid": _why_no_group,
    "--scheduler -S": _why_no_scheduler,
}
