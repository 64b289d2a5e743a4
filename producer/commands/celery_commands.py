"""Runs of Celery's own commands with our defaults, for `worker`, `beat` and `flower`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NoReturn

from config.celery_config import WORKER_ARGUMENTS, WORKER_ENVIRONMENT
from config.logs import is_json, set_up_logging
from config.settings import Loaded
from producer.commands.passed_on import check_passed_on
from producer.outputs.plain_streams import show_as_written
from producer.request.settings import settle
from producer.services.embedded import enter_broker
from producer.services.node_name import node_name
from producer.startup import stay
from ringhaul.errors import EXIT_COMPLETE, LedgerUnavailable
from ringhaul.ledger.connection import LedgerRefused, ServerUnusable
from ringhaul.plain_text import as_line
from tasks.connect import open_ledger
from tasks.exit_codes import exit_code
from tasks.pools import check_pool
from tasks.settings import warn_of_setting


def run_worker(
    concurrency: int | None,
    pool: str,
    config_file: Path | None,
    celery_options: tuple[str, ...],
) -> None:
    """Run a worker until it is stopped, and end this process with its exit code.

    Parameters are the options of `ringhaul worker`. Raises `UsageError` for options, and as
    `settle` does.
    """
    check_passed_on(celery_options)
    in_pool = ("--pool", check_pool(pool))
    flags = {"worker.concurrency": concurrency}
    left_out: list[str] = []
    loaded = settle(flags, config_file, leave_out=left_out.append)
    if left_out:
        set_up_logging(loaded.settings.logging, plain=as_line)
    for text in left_out:
        warn_of_setting(text)
    named = node_name(celery_options)
    run = partial(_run_worker, quiet=logs_json(loaded))
    code = run_celery(loaded, [*WORKER_ARGUMENTS, *named, *in_pool, *celery_options], run)
    end_process(exit_code(code))


def run_celery(loaded: Loaded, arguments: list[str], run: Callable[[list[str]], object]) -> object:
    """Hand over to Celery in this process, and return what `run` returns, which runs a command of
    Celery with these arguments."""
    show_as_written()
    for name, value in WORKER_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with ExitStack() as stack:
        loaded, broker = enter_broker(stack, loaded)
        if broker is None:
            _check_broker(loaded)
        return run(arguments)


def _check_broker(loaded: Loaded) -> None:
    """Raise `ServerUnusable` for a broker that can never serve, since Celery would retry for ever.
    If the broker is only down, or refuses us for now, Celery waits for it."""
    try:
        open_ledger(loaded.settings, 0).caller.command("PING")
    except ServerUnusable:
        raise
    except (LedgerRefused, LedgerUnavailable):
        return


def run_celery_command(arguments: list[str]) -> None:
    """Run a command of Celery's own command line."""
    from tasks import app

    stay()
    app.start(argv=arguments)


def logs_json(loaded: Loaded) -> bool:
    """Return whether this process logs JSON lines; if so, set that up now, because Celery sets up
    logging only after its banner and its first warnings."""
    settings = loaded.settings.logging
    if is_json(settings):
        set_up_logging(settings, plain=as_line)
        return True
    return False


def _run_worker(arguments: list[str], *, quiet: bool) -> object:
    """Run only Celery's worker command: its command line would import all others, Flower among
    them. `quiet`: without what Celery prints beside its log. Return its exit code in Celery."""
    from celery.apps import worker as celery_worker
    from celery.bin.base import CLIContext
    from celery.bin.worker import worker

    from tasks import app

    stay()
    if quiet:
        celery_worker.safe_say = _log_said
    context = CLIContext(app=app, no_color=False, workdir=None, quiet=quiet)
    return worker.main(
        args=arguments, prog_name="ringhaul worker", standalone_mode=False, obj=context
    )


def end_process(code: int = EXIT_COMPLETE) -> NoReturn:
    """End the process as Python does, not at once: Celery registers exit handlers, such as for a
    pid file."""
    sys.exit(code)


def _log_said(text: str, stream: object = None) -> None:
    """Log what Celery would print, such as at a shutdown."""
    logging.getLogger("celery.worker").info("%s", text)
