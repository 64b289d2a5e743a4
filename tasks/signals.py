"""Celery's signals: a session per pool process, opened after the fork, closed before the exit.

Receivers of one signal run in the order in which they stand here.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from celery.signals import (
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
)

from config.logs import set_up_logging
from ringhaul.errors import UsageError
from ringhaul.plain_text import as_line
from tasks.child import process
from tasks.node_name import set_nodename
from tasks.parent.shutdown import UNITS
from tasks.parent.trails import TRAILS
from tasks.profiling import Profiler, start_profiler
from tasks.settings import process_settings

log = logging.getLogger(__name__)

#: "0": this worker takes units of loads only.
READS_VARIABLE = "_RINGHAUL_READS"

#: Of this process.
_profiler = Profiler()


@setup_logging.connect(weak=False)
def on_setup_logging(**_: Any) -> None:
    """Logs in the house's form; connecting here keeps Celery from configuring its own."""
    set_up_logging(process_settings().logging, plain=as_line)


@worker_init.connect(weak=False)
def on_worker_name(sender: Any, **_: Any) -> None:
    """Results are told by the name that the worker was given."""
    set_nodename(sender.hostname)


@worker_init.connect(weak=False)
def on_worker_init_units(**_: Any) -> None:
    """Know which processes are in the middle of a unit when the worker is to stop."""
    UNITS.open()


@worker_init.connect(weak=False)
def on_worker_init_trails(**_: Any) -> None:
    """Know where a process was that hangs or dies. Without a place for that, nobody knows."""
    try:
        TRAILS.open()
    except OSError as error:
        log.warning("where processes are that hang will not be known: %s", error)


@worker_init.connect(weak=False)
def on_worker_init(**_: Any) -> None:
    """Load the compiled kernels of the read side in the parent: its children then share them, about
    100 MB each. A worker for the length of a load has no use for them."""
    if os.environ.get(READS_VARIABLE, "1") != "0":
        from tasks.kernels import warm_up

        warm_up()


@worker_process_init.connect(weak=False)
def on_process_init_trail(**_: Any) -> None:
    """Leave breadcrumbs for the parent."""
    try:
        TRAILS.begin()
    except OSError as error:
        log.warning("where this process is will not be known: %s", error)


@worker_process_init.connect(weak=False)
def on_process_init_profile(**_: Any) -> None:
    """Profile this child if its settings ask for it. Without its profile it is still of use."""
    global _profiler
    try:
        _profiler = start_profiler(process_settings())
    except UsageError as error:
        log.error("this process is not profiled: %s", error)


@task_prerun.connect(weak=False)
def on_unit_start(**_: Any) -> None:
    """A worker that stops waits for it; what is profiled is the work on units."""
    UNITS.begin()
    _profiler.unit_started()


@task_postrun.connect(weak=False)
def on_unit_end(**_: Any) -> None:
    """Sent whatever became of the unit."""
    _profiler.unit_ended()
    UNITS.end()


@worker_process_shutdown.connect(weak=False)
def on_process_shutdown_profile(**_: Any) -> None:
    """Write the profile first: closing a session may take longer than the process has."""
    _profiler.stop()


@worker_process_init.connect(weak=False)
def on_process_init(**_: Any) -> None:
    """Open this child's session. A failure is told and kept: see `process`."""
    fresh = process.start_child(process_settings())
    try:
        fresh.session()
    except Exception as error:  # Celery would swallow it without a word of what to do
        log.error("no session yet, this process takes no unit: %s", error)


@worker_process_shutdown.connect(weak=False)
def on_process_shutdown(**_: Any) -> None:
    """Close the session while the process still can."""
    process.current_child(process_settings()).close()
