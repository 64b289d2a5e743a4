"""Receivers of Celery's signals: set up and close what the parent and each pool process need.

Receivers of the same signal run in the order of this file. A pool process opens its session after
the fork and closes it before it exits.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Mapping
from typing import Any

from celery.signals import (
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
)

from config.logs import set_log_facts, set_up_logging
from ringhaul.optional_pandas import put_off_pandas
from ringhaul.plain_text import as_line
from ringhaul.run_folder import run_folder
from tasks.child import process
from tasks.kernels import warm_up
from tasks.names import READS_VARIABLE
from tasks.node_name import set_nodename
from tasks.parent.shutdown import UNITS
from tasks.parent.trails import TRAILS
from tasks.ptrace import allow_tracing
from tasks.settings import process_settings
from tasks.tracing import close_tracing

log = logging.getLogger(__name__)


@setup_logging.connect(weak=False)
def on_setup_logging(**_: Any) -> None:
    """Set up our log format; a receiver of this signal keeps Celery from configuring its own."""
    set_up_logging(process_settings().logging, plain=as_line)


@worker_init.connect(weak=False)
@worker_process_init.connect(weak=False)
def on_start_tracing(**_: Any) -> None:
    """Let py-spy and the like look into the parent and into each pool process."""
    allow_tracing()


@worker_init.connect(weak=False)
def on_worker_name(sender: Any, **_: Any) -> None:
    """Remember the worker's node name, which results and errors carry."""
    set_nodename(sender.hostname)


@worker_init.connect(weak=False)
def on_worker_init_units(**_: Any) -> None:
    """Track which processes are working on a unit, for the shutdown."""
    UNITS.open()


@worker_init.connect(weak=False)
def on_worker_init_trails(**_: Any) -> None:
    """Track where each process is, so that a hang or a crash can be located. Optional: a failure
    is only logged."""
    try:
        folder = run_folder(process_settings().state_dir)
        TRAILS.open(folder)
    except OSError as error:
        log.warning("hung processes cannot be detected: no place for their traces: %s", error)
        return
    # Celery's pool makes a folder for memory that it shares with its processes, by default in
    # TMPDIR, where it stays if the worker is killed.
    vars(multiprocessing.current_process())["_config"]["tempdir"] = str(folder)


@worker_init.connect(weak=False)
def on_worker_init(**_: Any) -> None:
    """Load the compiled kernels for reads in the parent, so that its children share them (about
    100 MB each). A worker started for a load does not need them."""
    if os.environ.get(READS_VARIABLE, "1") != "0":
        if not process_settings().transform.allowed:
            put_off_pandas()
        warm_up()


@worker_process_init.connect(weak=False)
def on_process_init_trail(**_: Any) -> None:
    """Start leaving breadcrumbs for the parent process."""
    try:
        TRAILS.begin()
    except OSError as error:
        log.warning("if this process hangs, that cannot be detected: %s", error)


@task_prerun.connect(weak=False)
def on_unit_start(kwargs: Mapping[str, Any], **_: Any) -> None:
    """Mark a unit as in progress (a shutdown waits for it), and name it in each line of the log."""
    set_log_facts(job=kwargs.get("job"), unit=kwargs.get("unit"))
    UNITS.begin()


@task_postrun.connect(weak=False)
def on_unit_end(**_: Any) -> None:
    """Mark the unit as ended. Celery sends this signal however the unit ended."""
    UNITS.end()
    set_log_facts()


@worker_process_init.connect(weak=False)
def on_process_init(**_: Any) -> None:
    """Open this process's session. A failure is logged and kept: see `process`."""
    fresh = process.start_child(process_settings())
    try:
        fresh.session()
    except Exception as error:  # Celery would swallow it without saying what to do
        log.error("no session yet, so this process takes no units: %s", error)


@worker_process_shutdown.connect(weak=False)
def on_process_shutdown(**_: Any) -> None:
    """Send the last spans, and close the session before the process exits."""
    close_tracing()
    process.current_child(process_settings()).close()
