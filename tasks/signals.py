"""Celery's signals: a session per pool process, opened after the fork, closed before the exit."""

from __future__ import annotations

import logging
from typing import Any

from celery.signals import (
    setup_logging,
    worker_process_init,
    worker_process_shutdown,
)

from config.logs import set_up_logging
from tasks import child
from tasks.application import process_settings

log = logging.getLogger(__name__)


@setup_logging.connect(weak=False)
def on_setup_logging(**_: Any) -> None:
    """Logs in the house's form; connecting here keeps Celery from configuring its own."""
    set_up_logging(process_settings().logging)


@worker_process_init.connect(weak=False)
def on_process_init(**_: Any) -> None:
    """Open this child's session. A failure is told and kept: see `child`."""
    fresh = child.start_child(process_settings())
    try:
        fresh.session()
    except Exception as error:  # Celery would swallow it without a word of what to do
        log.error("no session yet, this process takes no unit: %s", error)


@worker_process_shutdown.connect(weak=False)
def on_process_shutdown(**_: Any) -> None:
    """Close the session while the process still can."""
    child.current_child(process_settings()).close()
