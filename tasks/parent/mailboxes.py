"""Remove dead workers from Celery's table of workers that take remote control commands.

A worker removes itself when it stops, but not when it is killed: the complete table expires an
hour after its last worker. Where hosts come and go beside workers that stay, it would grow by about
50 bytes for each killed worker.

Control commands (such as Flower's) are published to all workers, in the table or not. So a worker
removed by mistake, because Redis was down and lost its heartbeat, misses nothing, and Celery adds
it again within 20 minutes.

Replies have another table, of the senders. It expires an hour after the last sender, and their
queues after 10 seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringhaul.ledger.connection import Caller

#: The table's key (kombu's Redis transport), after the key prefix: a set of queue names.
_TABLE = "_kombu.binding.celery.pidbox"
#: A member is a routing key and a pattern, both empty, and a queue: `worker1@host1.celery.pidbox`.
_ENDING = ".celery.pidbox"
_SEPARATOR = "\x06\x16"


def take_out_gone(caller: Caller, prefix: str, hosts: Collection[str]) -> int:
    """Remove the workers that are on none of these hosts. Return how many were removed.

    `prefix`: key prefix of Celery's messages. Raises as `Caller.command` does.
    """
    table: set[bytes] = caller.command("SMEMBERS", prefix + _TABLE)
    gone = [member for member in map(bytes.decode, table) if _host(member) not in hosts]
    if gone:
        caller.command("SREM", prefix + _TABLE, *gone)
    return len(gone)


def _host(member: str) -> str:
    """Return the host of a table member's worker."""
    queue = member.rpartition(_SEPARATOR)[2]
    return queue.removesuffix(_ENDING).partition("@")[2]
