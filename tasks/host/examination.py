"""Examination of this host for its report.

Standard output: lines of JSON, each with the parts of a `HostReport` that are ready. Ends within
`LIMIT_S`, whatever hangs.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from config.settings import load_settings
from tasks.command_line import spell_as
from tasks.host.machine import comparable_settings, measure_machine, versions
from tasks.host.report import HostReport, pack_report

LIMIT_S = 7.0

_lock = threading.Lock()


def report_host(started: float) -> None:
    """Write the report. `started`: when this process began, by the monotonic clock."""
    spell_as(None)
    loaded = load_settings(leave_out=lambda text: None)  # the worker has said so

    say(versions=versions(), settings=comparable_settings(loaded))
    machine = _start(lambda: say(machine=measure_machine(loaded.settings)))

    # Imported here, and not in threads, which would block each other: redis-py and the driver are
    # slow to import, and what is ready should not wait for them.
    from tasks.host.services import look_at_broker, look_at_cluster

    parts = [
        machine,
        _start(lambda: look_at_broker(loaded.settings, say)),
        _start(lambda: look_at_cluster(loaded.settings, say)),
    ]
    give_up = started + LIMIT_S
    for part in parts:
        part.join(max(0.0, give_up - time.monotonic()))


def say(**parts: Any) -> None:
    """Write parts of the report as one line to standard output."""
    line = json.dumps(pack_report(HostReport(**parts))).encode() + b"\n"
    with _lock:
        os.write(1, line)


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
