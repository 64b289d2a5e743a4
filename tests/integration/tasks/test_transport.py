"""The transport of workers, when its connection is lost."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from typing import Any

import pytest
from kombu.connection import Connection
from kombu.entity import Queue

from producer.local.valkey import EmbeddedValkey
from tasks.transport import UnitTransport
from tests.acceptance.command import wait_until
from tests.forged_messages import encoded, unit_message
from tests.services import running_valkey

log = logging.getLogger(__name__)


def test_a_connection_lost_during_units_is_closed_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    1. A worker has received two units, on two channels, and waits for the next message.
    2. Redis dies. The worker closes its connection the way Celery does, in two steps. The first
       fails at the channel that was opened last, so that the second closes the other one.
    3. The units end, and their messages can be acknowledged no more.
    """
    with running_valkey() as valkey:
        connection = Connection(valkey.url, transport=UnitTransport)
        channel = connection.default_channel
        messages = [receive(channel), receive(connection.channel())]
        channel.basic_consume("ringhaul.load", False, lambda _: None, "tag")
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=0.2)
        kill(valkey)
        errors = connection.connection_errors + connection.channel_errors

        with contextlib.suppress(Exception):  # as Celery does
            connection.collect(socket_timeout=0.1)
        assert not channel.closed, "one step was enough"
        with contextlib.suppress(*errors):
            connection.close()
        for message in messages:
            message.ack_log_error(log, errors)

    assert channel.closed
    # Not counting those of a driver that other tests of this process use
    logged = [one for one in caplog.records if not one.name.startswith("cassandra")]
    assert [one.getMessage() for one in logged if one.levelno >= logging.WARNING] == []


def receive(channel: Any) -> Any:
    """Send a message to the queue, and return it as received through the channel."""
    queue = Queue("ringhaul.load", channel=channel)
    queue.declare()
    with channel.conn_or_acquire() as client:
        client.lpush(queue.name, encoded(unit_message(queue.name)))
    return queue.get()


def kill(valkey: EmbeddedValkey) -> None:
    assert valkey.pid is not None
    os.kill(valkey.pid, signal.SIGKILL)
    wait_until(lambda: not valkey.running(), "the end of Valkey")
