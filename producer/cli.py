"""The `ringhaul` command group."""

from __future__ import annotations

import difflib
from typing import Any

import rich_click as click

from producer.commands.completion import complete_paths, is_completing
from producer.commands.registry import COMMANDS, GROUPS, find_command
from producer.translate.habits import advise_other_tool, refuse_bulk_loader_options
from ringhaul import __version__


class LazyGroup(click.RichGroup):
    """A group whose commands are imported when they are used; its help needs none of them."""

    _shows_help = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if self._shows_help and cmd_name in COMMANDS:
            return click.RichCommand(name=cmd_name, help=COMMANDS[cmd_name].summary)
        command = find_command(cmd_name)
        if command is not None and is_completing():
            complete_paths(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line; suggest the nearest name for an unknown one."""
        try:
            name, command, words = super().resolve_command(ctx, args)
        except click.UsageError as error:
            if advice := advise_other_tool(args[0]):
                message = f"{error.message.rstrip('.')}; {advice}"
                raise click.UsageError(message, ctx) from error
            close = difflib.get_close_matches(args[0], list(COMMANDS), n=1)
            if not close:
                raise
            message = f"{error.message.rstrip('.')}; did you mean {close[0]!r}?"
            raise click.UsageError(message, ctx) from error
        if name is not None and command is not None and not is_completing():
            refuse_bulk_loader_options(name, command, words)
        return name, command, words

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._shows_help = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._shows_help = False


click.rich_click.COMMAND_GROUPS["ringhaul"] = [
    {"name": heading, "commands": list(commands)} for heading, commands in GROUPS.items()
]


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ringhaul")
def cli() -> None:
    """Bulk load, unload and query for Apache Cassandra, spread over Celery workers.

    Start with `ringhaul demo`, or with a table of your own:

    ringhaul load orders.csv -t shop.orders
    """
