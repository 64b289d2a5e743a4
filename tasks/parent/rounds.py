"""The rounds of a keeper: heartbeat, sweep of the running jobs, and cleaning up after others.

Every worker reports its heartbeat at each round. The rest concerns the complete fleet, so at most
`workers.KEEPERS_MAX` workers do it: in a large fleet it would cost Redis more than units do.
"""

from __future__ import annotations

import logging

from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.ledger.sweep import sweep_running
from ringhaul.ledger.workers import Worker, Workers
from tasks.parent.abandoned_jobs import Abandoned
from tasks.parent.heartbeat import Heartbeat
from tasks.parent.lost import LOST
from tasks.parent.mailboxes import take_out_gone
from tasks.parent.sampling import Sampling
from tasks.private_queues import note_queues, remove_forgotten
from tasks.publish import publisher, windows

log = logging.getLogger(__name__)

#: Heartbeats may be missed this many times before a host counts as gone.
MISSED_MAX = 4


class Rounds:
    """The rounds of one worker's parent process, one every `every_s` seconds."""

    def __init__(
        self,
        ledger: Ledger,
        me: Worker,
        *,
        every_s: float,
        prefix: str,
        heartbeat: Heartbeat,
        notes_queues: bool,
    ) -> None:
        """`prefix`: key prefix of Celery's messages. `notes_queues`: the worker is embedded, so it
        reports that its queue is in use."""
        self._ledger, self._me, self._prefix = ledger, me, prefix
        self._ttl_ms = int(every_s * MISSED_MAX * 1000)
        self._heartbeat, self._notes_queues = heartbeat, notes_queues
        self._abandoned = Abandoned(ledger)
        self._sampling = Sampling(ledger)
        # The first worker cleans up what happened while none was running.
        self._some_are_gone = True

    def keep(self) -> int:
        """Make one round, and return how many workers are alive. Raises as the ledger does."""
        beat = Workers(self._ledger.caller).heartbeat(self._me, self._ttl_ms)
        self._some_are_gone |= beat.gone > 0
        self._heartbeat.beat()
        if self._notes_queues:
            note_queues(self._ledger.caller, self._me.queues)
        LOST.flush(self._ledger)  # before the sweep issues these units again
        if beat.keeps:
            self._keep_fleet()
        return beat.alive

    def _keep_fleet(self) -> None:
        found = sweep_running(self._ledger, windows(self._ledger), publisher(self._ledger))
        running = [job for job, swept in found.items() if swept.state is JobState.RUNNING]
        for job in self._abandoned.look(running):
            text = "job %s: its command has ended, and it cannot be resumed"
            log.warning(text, job, extra={"job": job})
        remove_forgotten(self._ledger.caller, self._prefix)
        self._sampling.look(running)
        if self._some_are_gone:
            hosts = {worker.host for worker in Workers(self._ledger.caller).alive()}
            take_out_gone(self._ledger.caller, self._prefix, hosts)
            self._some_are_gone = False
