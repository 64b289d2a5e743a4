"""Killed workers in Celery's table of control mailboxes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ringhaul.ledger.workers import Worker, Workers
from tasks.application import app
from tasks.connect import open_ledger
from tasks.parent.mailboxes import take_out_gone
from tests.integration.conftest import Settle

PREFIX = "ringhaul:mq:"
TTL_MS = 60_000


@contextmanager
def listening(name: str, heard: list[str]) -> Iterator[Any]:
    """Open a control mailbox for the worker of this name, which ends as if by SIGKILL.

    `heard`: collects the names of the control commands.
    """
    connection = app.connection()
    channel = connection.channel()
    try:
        node = app.control.mailbox.Node(
            name,
            channel=channel,
            handlers={
                "ping": lambda state: heard.append("ping"),
                "clock": lambda state: heard.append("clock"),
            },
        )
        node.listen(callback=node.handle_message)
        yield connection
    finally:
        channel.auto_delete_queues.clear()  # it would remove itself from the table
        connection.close()


def test_celerys_table_has_only_living_workers_after_many_kills(settle: Settle) -> None:
    caller = open_ledger(settle()).caller
    client, workers = caller.client, Workers(caller)

    def table() -> set[str]:
        members = client.smembers(f"{PREFIX}_kombu.binding.celery.pidbox")
        return {member.decode().rpartition("\x16")[2] for member in members}

    # Given a worker that stays and receives control commands
    heard: list[str] = []
    stays = Worker("host1", 7, 4)
    with listening("celery@host1", heard) as connection:
        workers.heartbeat(stays, TTL_MS)
        while not heard:  # until it has subscribed
            app.control.broadcast("ping")
            connection.drain_events(timeout=10)
        # When workers start under ever new host names, and each is killed
        for number in range(12):
            host = f"pod-{number}"
            with listening(f"celery@{host}", []):
                workers.heartbeat(Worker(host, 1, 4), 1)
            # Then its name stays in the table until housekeepers miss its heartbeat
            assert table() == {"celery@host1.celery.pidbox", f"celery@{host}.celery.pidbox"}
            while not workers.heartbeat(stays, TTL_MS).gone:
                pass
            hosts = {worker.host for worker in workers.alive()}
            assert take_out_gone(caller, PREFIX, hosts) == 1
            assert table() == {"celery@host1.celery.pidbox"}
        # And a living worker whose heartbeat Redis lost still receives control commands
        assert take_out_gone(caller, PREFIX, {"host2"}) == 1
        assert table() == set()
        app.control.broadcast("clock")
        while heard[-1] != "clock":
            connection.drain_events(timeout=10)
        assert table() == set()
    client.close()
