"""Values of options: which were given, lists, blanks."""

from __future__ import annotations

import rich_click as click
from click.core import ParameterSource

from ringhaul.errors import UsageError


def given_options(context: click.Context | None = None) -> set[str]:
    """Return the names of the options that the user gave to `context` (default: the running
    command)."""
    context = context or click.get_current_context()
    assert context is not None
    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def refuse_blank(option: str, text: str | None, wanted: str) -> None:
    """Raise `UsageError` for an option with an empty value, as an unset shell variable gives: the
    option would have no effect. `wanted`: what to give."""
    if text is not None and not text.strip(" \t\r\n,"):
        raise UsageError(f"{option} is empty: give {wanted}, or leave it out")


def table_names(table: str, keyspace: str | None) -> tuple[str, str]:
    """Return keyspace and name of a table, from --table and --keyspace.

    Raises `UsageError` if neither names the keyspace, or they name different ones.
    """
    named, _, name = table.rpartition(".")
    if named and keyspace and named != keyspace:
        raise UsageError(f"--table names keyspace {named}, --keyspace {keyspace}")
    found = named or keyspace
    if not found:
        raise UsageError("no keyspace: give --keyspace, or --table KEYSPACE.TABLE")
    return found, name


def comma_list(text: str | None) -> list[str]:
    """Split `a, b,c` into a list; empty parts are dropped."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]
