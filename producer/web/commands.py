"""`ringhaul flower`: Flower with our pages, safe defaults and guards."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from producer.commands.options import config_option
from producer.commands.passed_on import PASS_ON


@click.command("flower", context_settings=PASS_ON)
@config_option
@click.argument("flower_options", nargs=-1, type=click.UNPROCESSED)
def flower_command(config_file: Path | None, flower_options: tuple[str, ...]) -> None:
    """Serve the monitoring page.

    On loopback, unless --address says otherwise. Takes all options of `celery flower`, except
    secrets: see docs/explanation/security.md.
    """
    from producer.web.launch import start_flower

    start_flower(config_file, flower_options)
