"""The draft of a statement's values, and checks of its options."""

from __future__ import annotations

import re
import shlex

from producer.options.spelling import Spelling
from producer.options.statements import ExecOptions, LookupOptions
from producer.request.input_draft import InputDraft
from producer.request.input_format import input_of
from ringhaul.cql.names import read_names
from ringhaul.errors import UsageError
from tasks.command_line import VALUES_PREFIX

#: Prefix of the names of options about values.
_VALUES = VALUES_PREFIX.replace("-", "_")

#: First words of statements that have no values.
_ONCE = ("create", "alter", "drop", "truncate", "use", "describe", "grant", "revoke", "list")


#: A marker, outside of strings and quoted names.
_MARKER = re.compile(r"\?|:\w")
_QUOTED = re.compile(r"'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"|\$\$.*?\$\$|--[^\n]*", re.DOTALL)


def _plain(statement: str) -> str:
    """Return a statement without its strings, quoted names and comments."""
    return _QUOTED.sub(" ", statement)


def wanted_names(options: LookupOptions) -> tuple[list[str], list[str]]:
    """Return the columns that --key and --columns name. Raises `UsageError` for an invalid name."""
    return read_names(options.key, "--key"), read_names(options.columns, "--columns")


def check_inputs(options: ExecOptions) -> None:
    """Raise `UsageError` if the options of `ringhaul exec` do not say where its values are."""
    word = options.statement.split(maxsplit=1)[:1]
    if word and word[0].lower() in _ONCE:
        raise UsageError(
            f"exec cannot run {word[0].upper()}, which has no values: use cqlsh, or for the local "
            "stack "
            f"`ringhaul local cql -e {shlex.quote(options.statement)}`"
        )
    if not options.params and not options.ranges and not _MARKER.search(_plain(options.statement)):
        raise UsageError(
            "exec runs a statement for each row of values, and this one has no marker (?) for "
            "them. Put ? in the place of its values and give --params FILE; to run it once as it "
            "is, use cqlsh, or for the local stack "
            f"`ringhaul local cql -e {shlex.quote(options.statement)}`"
        )
    if (options.params is not None) == bool(options.ranges):
        raise UsageError("give --params FILE, or one --range for each marker")
    of_values = any(name.startswith(_VALUES) for name in options.given)
    if options.ranges and (of_values or "nulls" in options.given):
        raise UsageError(
            "the --values options and --nulls apply to a file: give none of them with --range"
        )


def values_draft(values: Spelling) -> InputDraft:
    """Return how the rows of values are read. Raises `UsageError`, which names the wrong option."""
    return InputDraft(by_name=True, **input_of(values, VALUES_PREFIX))
