"""`ringhaul worker`: options in; Celery does the rest. See `celery_commands`.

Options that are not defined here are passed on, so every option of Celery's worker works.
"""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from producer.commands.options import config_option
from producer.commands.passed_on import PASS_ON


@click.command("worker", context_settings=PASS_ON)
@click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(1),
    metavar="N",
    help="Worker processes [the cores they may use].",
)
@click.option(
    "-P",
    "--pool",
    default="prefork",
    metavar="POOL",
    help="Where units run: prefork, or solo for one unit at a time in the worker itself [prefork].",
)
@config_option
@click.argument("celery_options", nargs=-1, type=click.UNPROCESSED)
def worker_command(
    concurrency: int | None,
    pool: str,
    config_file: Path | None,
    celery_options: tuple[str, ...],
) -> None:
    """Work on units of all jobs, until stopped.

    Takes all options of `celery worker`. The first worker of a host is celery@HOST, the next
    celery2@HOST, unless --hostname names it.
    """
    from producer.commands.celery_commands import run_worker

    run_worker(concurrency, pool, config_file, celery_options)
