"""Private queues of jobs that have dedicated workers, and their removal.

Celery creates a queue for every consumer or sender and never deletes one: its bindings and its
unread messages stay in Redis. So the command that started the workers removes the queue when it
ends. What is left or arrives later is removed when the job is forgotten: messages that a killed
worker had taken are put back hours later, and a killed command removes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ringhaul.ledger import keys
from ringhaul.ledger.forget import forget_gone

if TYPE_CHECKING:
    from ringhaul.ledger.connection import Caller

#: Differs from the prefix of shared load queues, which end in the name of a data centre: a job id
#: may equal such a name.
_BEGINNING = "ringhaul.own."
#: The keys, after the key prefix, that Celery's transport creates for a queue and its exchange of
#: the same name: bindings, permanent bindings, and messages.
_LAYOUT = ("_kombu.binding.%s", "_kombu.binding_permanent.%s", "%s")


def private_queue(job_id: str) -> str:
    """Return the queue of a job with dedicated workers. They take no other job's units, which may
    be for another cluster, and no other worker takes theirs."""
    return f"{_BEGINNING}{job_id}"


def is_private(queue: str) -> bool:
    """Return whether a queue belongs to one job with dedicated workers."""
    return queue.startswith(_BEGINNING)


def note_queues(caller: Caller, queues: Iterable[str]) -> None:
    """Record that these private queues are in use now. Raises as `Caller.command` does."""
    seconds, _ = caller.command("TIME")
    for queue in queues:
        caller.command("ZADD", keys.QUEUES, seconds * 1000, queue.removeprefix(_BEGINNING))


def remove_queue(caller: Caller, prefix: str, job_id: str) -> None:
    """Remove a job's queue and its messages. It must not have consumers any more.

    `prefix`: key prefix of Celery's messages. Raises as `Caller.command` does.
    """
    queue = private_queue(job_id)
    caller.command("DEL", *(prefix + layout % queue for layout in _LAYOUT))


def remove_forgotten(caller: Caller, prefix: str) -> None:
    """Remove the queues of forgotten jobs. Raises as `Caller.script` does."""
    for job_id in forget_gone(caller, keys.QUEUES):
        remove_queue(caller, prefix, job_id)
