"""`ringhaul flower`: Flower with our pages, safe defaults and guards."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import rich_click as click

from producer.commands.celery_commands import PASS_ON, end_process, run_celery
from producer.commands.options import config_option
from producer.request.settings import settle


@click.command("flower", context_settings=PASS_ON)
@config_option
@click.argument("flower_options", nargs=-1, type=click.UNPROCESSED)
def flower_command(config_file: Path | None, flower_options: tuple[str, ...]) -> None:
    """Serve the monitoring page.

    On loopback, unless --address says otherwise. Further options are those of `celery flower`;
    secrets are not among them, see docs/explanation/security.md.
    """
    from producer.web.launch import refuse_unsafe, run_flower

    refuse_unsafe(flower_options)
    loaded = settle({}, config_file)
    run_celery(loaded, list(flower_options), partial(run_flower, loaded.settings))
    end_process()
