"""Kombu's Redis transport, extended to drop messages that `messages` finds unfit.

Each item is checked between Redis's reply and kombu, and rewritten with known names only. In place
of an unfit item kombu gets an empty reply; the item is gone from the queue and not kept anywhere.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import kombu.transport.redis
from redis import RedisError
from redis.exceptions import ResponseError

from tasks.messages import OtherTask, Unfit, dumps, fit, loads

log = logging.getLogger(__name__)

#: Kombu has no types.
transport: Any = kombu.transport.redis

#: A queue may hold thousands of unfit messages: log at most one line in this time.
SAY_EVERY_S = 60.0


class Dropped:
    """Counts and logs dropped messages, at most once a minute."""

    def __init__(self) -> None:
        self._count = 0
        self._said_at: float | None = None
        self._last = ("", 0, "")

    def note(self, queue: str, item: object, reason: str) -> None:
        """Count a dropped message. Neither its bytes nor its values are logged."""
        self._count += 1
        self._last = (queue, len(item) if isinstance(item, bytes | str) else 0, reason)
        self.report()

    def report(self, *, at_once: bool = False) -> None:
        """Log how many messages were dropped since the last time, if it is time to, or `at_once`.
        Call this from time to time: after the last message of many, no other may come."""
        now = time.monotonic()
        if not self._count:
            return
        if not at_once and self._said_at is not None and now - self._said_at < SAY_EVERY_S:
            return
        queue, size, reason = self._last
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


class HandedBack:
    """Messages for tasks of other versions, until the worker hands their units back."""

    #: Further messages wait for their sweep.
    MOST = 1000

    def __init__(self) -> None:
        self._messages: dict[tuple[str, int, int], str] = {}

    def note(self, message: OtherTask) -> None:
        """Keep what the message is about; each unit once."""
        if len(self._messages) < self.MOST:
            self._messages[message.job, message.unit, message.epoch] = message.task

    def take(self) -> dict[tuple[str, int, int], str]:
        """Return (job, unit, epoch) -> task of the messages since the last call."""
        found, self._messages = self._messages, {}
        return found


#: The messages of this process.
HANDED_BACK = HandedBack()


class UnitQoS(transport.QoS):  # type: ignore[misc]
    """Restores unacknowledged messages, and drops each that cannot be restored.

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

    def restore_visible(self, *args: Any, **options: Any) -> Any:
        """Restore what other workers left, on a timer of kombu's that passes errors on."""
        try:
            return super().restore_visible(*args, **options)
        except ResponseError as error:  # such as a key of another type
            log.warning("messages that other workers left cannot be taken over: %s", error)

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
    #: The queue of the RPOP that is sent, whose answer does not name it.
    _queue = ""

    def _get(self, queue: str) -> Any:
        self._queue = queue
        return super()._get(queue)

    def _create_client(self, asynchronous: bool = False) -> Any:
        client = super()._create_client(asynchronous=asynchronous)
        parse = client.parse_response

        def parse_response(connection: Any, command_name: str, **options: Any) -> Any:
            answer = parse(connection, command_name, **options)
            if command_name not in ("BRPOP", "RPOP") or answer is None:
                return answer
            key, item = answer if command_name == "BRPOP" and answer else (self._queue, answer)
            # A message of lower priority is in a queue of its own: NAME, separator, priority.
            kept = _fit_or_dropped(item, _text(key).rsplit(self.sep, 1)[0])
            if kept is None or command_name == "RPOP":
                return kept
            return key, kept

        client.parse_response = parse_response
        return client

    def _handle_message(self, client: Any, r: Any) -> Any:
        """Check messages received by publish/subscribe: events, and commands for workers."""
        payload = super()._handle_message(client, r)
        if not _text(payload["type"]).endswith("message"):
            return payload
        kept = _fit_or_dropped(payload["data"], _text(payload["channel"]))
        return {**payload, "data": kept} if kept is not None else {**payload, "type": "dropped"}

    def _do_restore_message(
        self, payload: Any, exchange: Any, routing_key: Any, pipe: Any, leftmost: bool = False
    ) -> None:
        """Put a message back into its queue, unless it cannot have been there."""
        kept = _fit_or_dropped(dumps(payload), str(routing_key))
        if kept is not None:
            super()._do_restore_message(loads(kept), "", routing_key, pipe, leftmost)


def _fit_or_dropped(item: object, place: str) -> bytes | None:
    """Return an item for kombu; None if it is unfit, which is then counted and logged, or if its
    unit is to be handed back."""
    try:
        return fit(item, place)
    except OtherTask as message:
        HANDED_BACK.note(message)
        return None
    except Unfit as error:
        DROPPED.note(place, item, str(error))
        return None


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class UnitTransport(transport.Transport):  # type: ignore[misc]
    """The transport of `redis://` and `rediss://`."""

    Channel = UnitChannel
