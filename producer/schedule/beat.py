"""The run of Celery's beat, with our scheduler and the schedule file."""

from __future__ import annotations

import importlib
from pathlib import Path

from config.celery_config import BEAT_ARGUMENTS
from producer.commands.celery_commands import (
    end_process,
    logs_json,
    run_celery,
    run_celery_command,
)
from producer.commands.passed_on import check_passed_on
from producer.request.settings import settle
from producer.schedule.last_good import load_schedule_file


def run_beat(config_file: Path | None, celery_options: tuple[str, ...]) -> None:
    """Start scheduled jobs when they are due, until beat is stopped, and end this process.

    Raises `UsageError` for an option or a schedule file that cannot be used, and as `settle` does.
    """
    check_passed_on(celery_options)
    loaded = settle({}, config_file)
    load_schedule_file(loaded.settings)  # report errors now, and not at night
    quiet = ["--quiet"] if logs_json(loaded) else []
    run_celery(loaded, [*quiet, "beat", *BEAT_ARGUMENTS, *celery_options], _run_beat)
    end_process()


def _run_beat(arguments: list[str]) -> None:
    """Run beat with its scheduler imported: once Celery handles signals, one in the middle of the
    import would end beat with an error."""
    from tasks import app

    importlib.import_module(str(app.conf.beat_scheduler).partition(":")[0])
    run_celery_command(arguments)
