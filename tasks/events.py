"""Worker events that never block on an unavailable broker.

Celery sends a worker's heartbeat every few seconds, with endless retries, in the main thread of the
parent process. A worker whose broker goes away is therefore soon stuck in such a loop: it notices
neither a signal to stop nor hung processes, and only the broker's return frees it. Here an event
that cannot be sent is buffered and sent later. The consumer detects the broken connection itself,
and its retry loop does react to signals.
"""

from __future__ import annotations

from typing import Any

from celery.app.events import Events
from celery.events.dispatcher import EventDispatcher


class UnitDispatcher(EventDispatcher):  # type: ignore[misc]
    """Dispatcher that tries to send an event once, and buffers it if that fails."""

    def send(self, type: str, *args: Any, retry: bool = False, **fields: Any) -> Any:
        """Send or buffer the event. `retry`, which Celery's heartbeat sets, is ignored."""
        return super().send(type, *args, retry=False, **fields)


class UnitEvents(Events):  # type: ignore[misc]
    """Factory with which the application creates its dispatchers."""

    dispatcher_cls = "tasks.events:UnitDispatcher"
