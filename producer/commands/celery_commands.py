"""`ringhaul worker`, `beat` and `flower`: Celery's own commands with the house's defaults.

What is not named here is passed on, so every option of Celery and Flower works.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import rich_click as click

from producer.embedded import EmbeddedBroker, is_embedded
from producer.options import config_option, settle

PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True}


@click.command("worker", context_settings=PASS_ON)
@click.option("-c", "--concurrency", type=click.IntRange(1), help="Worker processes (cores).")
@config_option
@click.argument("celery_options", nargs=-1, type=click.UNPROCESSED)
def worker_command(
    concurrency: int | None, config_file: Path | None, celery_options: tuple[str, ...]
) -> None:
    """Work on units of all jobs, until stopped. Further options are those of `celery worker`."""
    from config.celery_config import WORKER_ARGUMENTS

    _celery(
        {"worker.concurrency": concurrency},
        config_file,
        ["worker", *WORKER_ARGUMENTS, *celery_options],
    )


@click.command("beat", context_settings=PASS_ON)
@config_option
@click.argument("celery_options", nargs=-1, type=click.UNPROCESSED)
def beat_command(config_file: Path | None, celery_options: tuple[str, ...]) -> None:
    """Start scheduled jobs when they are due. Run exactly one. Options: `celery beat`."""
    from config.celery_config import BEAT_ARGUMENTS

    _celery({}, config_file, ["beat", *BEAT_ARGUMENTS, *celery_options])


@click.command("flower", context_settings=PASS_ON)
@config_option
@click.argument("flower_options", nargs=-1, type=click.UNPROCESSED)
def flower_command(config_file: Path | None, flower_options: tuple[str, ...]) -> None:
    """The monitoring page, on loopback unless told otherwise. Options: `celery flower`."""
    from config.celery_config import FLOWER_ARGUMENTS

    _celery({}, config_file, ["flower", *FLOWER_ARGUMENTS, *flower_options])


def _celery(flags: dict[str, Any], config_file: Path | None, arguments: list[str]) -> None:
    """Hand over to Celery's command line in this process."""
    from config.celery_config import WORKER_ENVIRONMENT, make_beat_dir

    loaded = settle(flags, config_file)
    for name, value in WORKER_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    make_beat_dir(loaded.settings)
    if is_embedded(loaded):
        with EmbeddedBroker(loaded.settings.state_dir):
            _run(arguments)
    else:
        _run(arguments)


def _run(arguments: list[str]) -> None:
    from tasks import app

    app.start(argv=arguments)
