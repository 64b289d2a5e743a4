"""The scheduler of Celery's beat that starts schedules. `beat_scheduler` names it (config).

Celery's part is the process: its options, its loop, its logging. Entries that are put into
`beat_schedule` are sent as Celery does it, too.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from celery import beat

from config.settings import load_settings
from producer.schedule.scheduler import Beat
from tasks.connect import open_ledger, use_storage


class ScheduleScheduler(beat.Scheduler):  # type: ignore[misc]
    """Looks at the schedules at each tick. Nothing is kept on this host."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._beat: Beat | None = None  # Celery makes one of these for its banner alone
        self._stopping = False
        super().__init__(*args, **options)

    @property
    def info(self) -> str:
        return ""

    def tick(self, *args: Any, **options: Any) -> float:
        """One look; the seconds until the next one."""
        if self._stopping:
            raise SystemExit
        if self._beat is None:
            self._take_signals()
            loaded = load_settings()
            use_storage(loaded.settings)
            self._beat = Beat(loaded, open_ledger(loaded.settings))
        pause_s: float = super().tick(*args, **options)
        return min(pause_s, self._beat.look())

    def close(self) -> None:
        """Called at the end; runs are left to other beats."""
        if self._beat is not None:
            self._beat.close()
            self._beat = None
        super().close()

    def _take_signals(self) -> None:
        """Stop between two looks: Celery's own handler would close this in the midst of one."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._stopping = True

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
