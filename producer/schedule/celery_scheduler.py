"""Scheduler class for Celery's beat that starts our schedules; set as `beat_scheduler` in config.

Celery provides the process: its options, its loop, its logging. It also sends the entries in
`beat_schedule` as usual.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from celery import beat

from producer.schedule.scheduler import Beat
from tasks.connect import open_ledger
from tasks.settings import loaded_settings
from tasks.storage_settings import use_storage


class ScheduleScheduler(beat.Scheduler):  # type: ignore[misc]
    """Checks the schedules at each tick. It keeps no state on this host."""

    def __init__(self, *args: Any, lazy: bool = False, **options: Any) -> None:
        """`lazy`: Celery creates this one only to print its banner."""
        self._beat: Beat | None = None
        self._stopping = False
        if not lazy:
            # Before anything is imported or built, which a signal must not interrupt.
            self._take_signals()
        super().__init__(*args, lazy=lazy, **options)

    @property
    def info(self) -> str:
        return ""

    def tick(self, *args: Any, **options: Any) -> float:
        """Check all schedules; return the seconds until the next check."""
        if self._stopping:
            raise SystemExit
        if self._beat is None:
            loaded = loaded_settings()
            use_storage(loaded.settings)
            self._beat = Beat(loaded, open_ledger(loaded.settings))
        pause_s: float = super().tick(*args, **options)
        return min(pause_s, self._beat.look())

    def close(self) -> None:
        """Leave the runs to other beats. Celery calls this at the end."""
        if self._beat is not None:
            self._beat.close()
            self._beat = None
        super().close()

    def _take_signals(self) -> None:
        """Handle signals so that beat stops between two ticks: Celery's own handler would call
        `close` in the middle of one."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._stopping = True

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
