"""`ringhaul`, which is `python -m producer`.

Subcommands are imported when they are used: `ringhaul --help` and `ringhaul status` must feel
instant, and pyarrow, the driver and Celery take a second to import.
"""

from __future__ import annotations

import importlib
from typing import NoReturn

from producer.startup import (
    leave,
    refuse_foreign_config,
    stand_in_for_closed,
    start_quickly,
)

stand_in_for_closed()
start_quickly()

import rich_click as click  # noqa: E402

from ringhaul import __version__  # noqa: E402

#: Command -> the object in `producer.commands` that is the click command.
COMMANDS = {
    "load": "load:load_command",
    "verify": "verify:verify_command",
    "unload": "unload:unload_command",
    "count": "query:count_command",
    "query": "query:query_command",
    "lookup": "ask:lookup_command",
    "exec": "ask:exec_command",
    "status": "status:status_command",
    "errors": "errors:errors_command",
    "top": "top:top_command",
    "pause": "control:pause_command",
    "resume": "control:resume_command",
    "throttle": "control:throttle_command",
    "cancel": "control:cancel_command",
    "schedule": "schedule:schedule",
    "worker": "celery_commands:worker_command",
    "beat": "celery_commands:beat_command",
    "flower": "celery_commands:flower_command",
    "local": "local:local",
    "config": "config:config_command",
    "doctor": "doctor:doctor_command",
    "demo": "demo:demo_command",
}


class LazyGroup(click.RichGroup):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(
            importlib.import_module(f"producer.commands.{module}"), name
        )
        return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ringhaul")
def cli() -> None:
    """Bulk load, unload and query for Apache Cassandra, spread over Celery workers."""


def main() -> NoReturn:
    """Run the command line. User code never comes from the current directory."""
    from producer.errors import run_told
    from producer.plain_streams import show_plain_text

    show_plain_text()

    def run() -> object:
        refuse_foreign_config()
        return cli.main(prog_name="ringhaul", standalone_mode=False)

    leave(run_told(run))


if __name__ == "__main__":
    main()
