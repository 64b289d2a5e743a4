"""The `ringhaul` command group: every command, imported when it is used."""

from __future__ import annotations

import rich_click as click

from producer.commands.registry import COMMANDS, find_command
from ringhaul import __version__


class LazyGroup(click.RichGroup):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ringhaul")
def cli() -> None:
    """Bulk load, unload and query for Apache Cassandra, spread over Celery workers."""
