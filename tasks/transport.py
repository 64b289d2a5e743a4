"""Kombu's Redis transport, extended to drop messages that `messages` finds unfit.

Each item is checked between Redis's reply and kombu. In place of an unfit one kombu gets an empty
reply; the item is then gone from the queue and not kept anywhere.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import kombu.transport.redis
from redis import RedisError

from tasks.messages import why_unfit

log = logging.getLogger(__name__)

#: Kombu has no types.
transport: Any = kombu.transport.redis

#: A queue may hold thousands of unfit messages: log at most one line in this time.
SAY_EVERY_S = 60.0


class Dropped:
    """Logs dropped messages, at most once a minute."""

    def __init__(self) -> None:
        self._count = 0
        self._said_at: float | None = None

    def note(self, queue: str, item: object, reason: str) -> None:
        """Count a dropped message. Neither its bytes nor its values are logged."""
        self._count += 1
        now = time.monotonic()
        if self._said_at is not None and now - self._said_at < SAY_EVERY_S:
            return
        size = len(item) if isinstance(item, bytes | str) else 0
        log.error(
            "dropped a message of %s bytes from %.100r: %s (%s dropped since the last warning). "
            "Does anything other than ringhaul write to this Redis?",
            f"{size:,}",
            queue,
            reason,
            f"{self._count:,}",
        )
        self._count, self._said_at = 0, now


#: The counter of this process.
DROPPED = Dropped()


class UnitQoS(transport.QoS):  # type: ignore[misc]
    """Restores unacknowledged messages, and drops those that cannot be restored.

    Once its connection is lost, it restores and acknowledges nothing: kombu would end the worker
    with an AttributeError. The sweep issues the units again that still need it, and a message that
    is delivered twice finds its unit done.
    """

    def restore_unacked(self, client: Any = None) -> None:
        if self._is_cut_off():
            self._delivered.clear()
        else:
            super().restore_unacked(client)

    def ack(self, delivery_tag: Any) -> None:
        if self._is_cut_off():
            super(transport.QoS, self).ack(delivery_tag)  # what this process remembers of it
        else:
            super().ack(delivery_tag)

    def _is_cut_off(self) -> bool:
        """Return whether kombu has taken the channel's transport away."""
        transport = self.channel.connection
        return transport is None or transport.client is None

    def restore_by_tag(self, tag: Any, client: Any = None, leftmost: bool = False) -> None:
        try:
            super().restore_by_tag(tag, client, leftmost)
        except RedisError:
            raise
        except Exception as error:
            DROPPED.note(str(self.unacked_key), b"", f"it cannot be read ({type(error).__name__})")
            with self.channel.conn_or_acquire(client) as connected, connected.pipeline() as pipe:
                self._remove_from_indices(tag, pipe).execute()


class UnitChannel(transport.Channel):  # type: ignore[misc]
    """A channel that tolerates any content in its queues."""

    QoS = UnitQoS

    def _create_client(self, asynchronous: bool = False) -> Any:
        client = super()._create_client(asynchronous=asynchronous)
        parse = client.parse_response

        def parse_response(connection: Any, command_name: str, **options: Any) -> Any:
            answer = parse(connection, command_name, **options)
            if command_name not in ("BRPOP", "RPOP") or answer is None:
                return answer
            key, item = answer if command_name == "BRPOP" and answer else (b"", answer)
            queue = _text(key)
            reason = why_unfit(item, queue)
            if not reason:
                return answer
            DROPPED.note(queue.rsplit(self.sep, 1)[0], item, reason)
            return None

        client.parse_response = parse_response
        return client

    def _handle_message(self, client: Any, r: Any) -> Any:
        """Check messages received by publish/subscribe: events, and commands for workers."""
        payload = super()._handle_message(client, r)
        if not _text(payload["type"]).endswith("message"):
            return payload
        reason = why_unfit(payload["data"], "")
        if not reason:
            return payload
        DROPPED.note(_text(payload["channel"]), payload["data"], reason)
        return {**payload, "type": "dropped"}


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class UnitTransport(transport.Transport):  # type: ignore[misc]
    """The transport of `redis://` and `rediss://`."""

    Channel = UnitChannel
