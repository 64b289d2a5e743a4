"""Celery's table of workers that hear orders, such as Flower's: those that are gone leave it.

A worker takes itself out when it ends, and one that is killed stays: the table goes as a whole, an
hour after its last worker. Where hosts come and go beside workers that stay it would grow by some
50 bytes for each that was killed, for ever.

Orders are published, and who is in the table hears them no better than who is not. So a worker that
was taken out by mistake, as Redis was away and forgot its heartbeat, misses nothing. Celery puts
it back within 20 minutes.

Answers to orders have a table of their own, of those who ask. It is let go an hour after the last
of them, and their queues 10 seconds after.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringhaul.ledger.connection import Caller

#: The table (kombu's Redis transport), behind the prefix of Celery's keys: a set of queues by name.
_TABLE = "_kombu.binding.celery.pidbox"
#: A queue is `worker1@host1.celery.pidbox`, behind a routing key and a pattern, which are empty.
_ENDING = ".celery.pidbox"
_PARTED_BY = "\x06\x16"


def take_out_gone(caller: Caller, prefix: str, hosts: Collection[str]) -> int:
    """Take out the workers that are on none of these hosts. Returns how many those were.

    `prefix`: of the keys of Celery's messages. Raises as `Caller.command` does.
    """
    table: set[bytes] = caller.command("SMEMBERS", prefix + _TABLE)
    gone = [member for member in map(bytes.decode, table) if _host(member) not in hosts]
    if gone:
        caller.command("SREM", prefix + _TABLE, *gone)
    return len(gone)


def _host(member: str) -> str:
    """Where the worker of a member of the table is, or was."""
    queue = member.rpartition(_PARTED_BY)[2]
    return queue.removesuffix(_ENDING).partition("@")[2]
