"""The command `ringhaul`, which starts in `ringhaul.__main__`.

Subcommands are imported when they are used: `ringhaul --help` and `ringhaul status` must feel
instant, and pyarrow, the driver and Celery take a second to import.
"""

from __future__ import annotations

from typing import NoReturn

from producer.cli import cli
from producer.commands.completion import is_completing
from producer.commands.help_pages import draw_help
from producer.errors import run_command
from producer.outputs.plain_streams import show_plain_text
from producer.startup import (
    leave,
    refuse_foreign_config,
    stand_in_for_closed,
    start_quickly,
)
from tasks.command_line import spell_as

stand_in_for_closed()
start_quickly()
spell_as(None)


def main() -> NoReturn:
    """Run the command line. User code never comes from the current directory."""
    if not is_completing():
        show_plain_text()
    draw_help()

    def run() -> object:
        refuse_foreign_config()
        return cli.main(prog_name="ringhaul", standalone_mode=False)

    leave(run_command(run))


if __name__ == "__main__":
    main()
