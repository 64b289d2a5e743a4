"""The table that a command reads: as an argument, or by `-t`."""

from __future__ import annotations

from collections.abc import Callable

import rich_click as click
from click.core import ParameterSource

from producer.commands.options import Command

#: In a context's meta data: the table that the argument names.
_NAMED = "ringhaul.table"


def table_argument(*, required: bool) -> Callable[[Command], Command]:
    """Add `TABLE`, `-t` and `-k` to a command; the first two are one parameter, `table`.

    `required`: whether one of them has to be given.
    """

    def table_of(
        context: click.Context, parameter: click.Parameter, value: str | None
    ) -> str | None:
        named: str | None = context.meta.get(_NAMED)
        if value is not None and named is not None:
            raise click.UsageError("TABLE and -t both name the table: give one of them")
        if named is not None and parameter.name is not None:
            # It counts as given, and is part of the command line that a job keeps.
            context.set_parameter_source(parameter.name, ParameterSource.COMMANDLINE)
        if value is None and named is None and required and not context.resilient_parsing:
            raise click.UsageError("no table: give KEYSPACE.TABLE, or -t and -k", context)
        return value if named is None else named

    def keep(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta[_NAMED] = value

    def decorate(command: Command) -> Command:
        for option in (
            click.option(
                *("-t", "--table"),
                metavar="NAME",
                callback=table_of,
                help="Table, or KEYSPACE.TABLE, instead of the argument.",
            ),
            click.option("-k", "--keyspace", metavar="NAME", help="Keyspace of the table."),
            click.argument(
                "named_table",
                metavar="[TABLE]",
                required=False,
                is_eager=True,
                expose_value=False,
                callback=keep,
            ),
        ):
            command = option(command)
        return command

    return decorate
