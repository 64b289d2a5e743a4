"""The queue of a job that has workers of its own, until nothing of it is left.

Celery makes a queue for whoever listens or sends to it, and never takes one away: its bindings stay
in Redis, and the messages that nobody took. So the command that had the workers removes the queue
at its end. Whatever comes to it afterwards goes when the job is forgotten: messages that a killed
worker had taken are put back hours later, and a command that was killed removes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ringhaul.ledger import keys

if TYPE_CHECKING:
    from ringhaul.ledger.connection import Caller

#: Not that of all loads: a job may have the name of a data centre, which has a queue there.
_BEGINNING = "ringhaul.own."
#: What Celery's transport makes for a queue with an exchange of its name, behind the prefix of its
#: keys: who is bound to the exchange, who is so for good, and the messages.
_LAYOUT = ("_kombu.binding.%s", "_kombu.binding_permanent.%s", "%s")


def private_queue(job_id: str) -> str:
    """The queue of a job that has workers of its own: they take no other job's units, which may
    be for another cluster, and nobody else takes theirs."""
    return f"{_BEGINNING}{job_id}"


def note_queues(caller: Caller, queues: Iterable[str]) -> None:
    """Say that these private queues are in use now. Raises as `Caller.command` does."""
    seconds, _ = caller.command("TIME")
    for queue in queues:
        caller.command("ZADD", keys.QUEUES, seconds * 1000, queue.removeprefix(_BEGINNING))


def remove_queue(caller: Caller, prefix: str, job_id: str) -> None:
    """Remove a job's queue, with its messages. Nobody may be listening any more.

    `prefix`: of the keys of Celery's messages. Raises as `Caller.command` does.
    """
    queue = private_queue(job_id)
    caller.command("DEL", *(prefix + layout % queue for layout in _LAYOUT))


def remove_forgotten(caller: Caller, prefix: str) -> None:
    """Remove what is left of the queues of jobs that are forgotten. Raises as `Caller.script`."""
    from ringhaul.ledger.forget import forget_gone  # redis-py: not for commands that only ask

    for job_id in forget_gone(caller, keys.QUEUES):
        remove_queue(caller, prefix, job_id)
