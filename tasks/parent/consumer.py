"""The worker's consumer, which says why Redis refused a command and goes on.

Celery would end the worker, or try again at once and name no reason.
"""

from __future__ import annotations

import logging
import time

from celery.worker.consumer import Consumer
from redis.exceptions import ResponseError

log = logging.getLogger(__name__)

#: Pause after a refusal: it ends when someone frees memory, grants a right or deletes a key.
PAUSE_S = 1.0


class UnitConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer, patient with a broker that refuses a command."""

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Prepare for the next try after an error of the broker or the connection to it."""
        if isinstance(exc, ResponseError):
            log.error("Redis refuses a command without which no unit arrives: %s", exc)
            time.sleep(PAUSE_S)
        super().on_connection_error_after_connected(exc)
