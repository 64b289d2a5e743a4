"""Events of a worker, none of which waits for a broker that is away.

Celery sends a worker's heartbeat with retries that have no end, in the main thread of its parent
process. Every few seconds there is one, so a worker whose broker goes away soon stands in such a
loop: it sees neither a signal to stop nor processes that hang, and only the broker's return frees
it. What cannot be sent is kept and sent later; the consumer finds the broken connection by itself,
and its own loop of retries heeds signals.
"""

from __future__ import annotations

from typing import Any

from celery.app.events import Events
from celery.events.dispatcher import EventDispatcher


class UnitDispatcher(EventDispatcher):  # type: ignore[misc]
    """Sends an event once, or keeps it for later."""

    def send(self, type: str, *args: Any, retry: bool = False, **fields: Any) -> Any:
        """Send or keep the event. `retry` is what Celery's heartbeat asks for; it is not heeded."""
        return super().send(type, *args, retry=False, **fields)


class UnitEvents(Events):  # type: ignore[misc]
    """What the application makes its dispatchers of."""

    dispatcher_cls = "tasks.events:UnitDispatcher"
