"""The keeper: each worker's own timer that says the host is alive and sweeps the jobs.

It runs in the worker's parent process, on Celery's timer: no thread (children fork from this
process) and nothing that could queue behind units. Any number of keepers may sweep at once.

The keeper also looks at inputs and outputs for commands that plan a job (`looking`): beside the
units, so that it is done while all processes are busy.

A file's age tells probes of the same: it is touched once Redis has taken the heartbeat, so it grows
old when this process hangs and when Redis is out of its reach.

It tells the ledger of lost processes that it could not be told of at once (`lost`).

It removes queues that commands left behind, once their jobs are forgotten (`private_queues`), takes
workers that are gone out of Celery's table (`mailboxes`), and ends jobs that were left and that
nobody can go on with (`abandoned`).

The worker of an embedded job ends with the command that started it: when that command was killed
and could not stop its worker, the keeper does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from typing import Any

from celery import bootsteps

from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.server import read_server
from ringhaul.ledger.server_checks import check_server, warnings_of
from ringhaul.ledger.states import JobState
from ringhaul.ledger.sweep import sweep_running
from ringhaul.ledger.workers import Worker, Workers
from tasks.connect import PARENT_PATIENCE_MS, open_ledger
from tasks.node_name import worker_host
from tasks.parent.abandoned_jobs import Abandoned
from tasks.parent.heartbeat import Heartbeat
from tasks.parent.lost import LOST
from tasks.parent.mailboxes import take_out_gone
from tasks.parent.preflight import ASK_EVERY_S, WATCH_EVERY_S, Looking
from tasks.parent.trails import TRAILS
from tasks.private_queues import note_queues, remove_forgotten
from tasks.publish import publisher, windows

log = logging.getLogger(__name__)

#: Heartbeats may be missed this many times before a host counts as gone.
MISSED_MAX = 4

#: Set for a worker that belongs to a command: that command's process id.
PARENT_PID_VARIABLE = "_RINGHAUL_PARENT_PID"
PARENT_LOOK_S = 1.0


class Keeper(bootsteps.StartStopStep):  # type: ignore[misc]
    """Boot step of a worker."""

    requires = {"celery.worker.components:Timer"}  # noqa: RUF012 - Celery reads a class attribute

    def __init__(self, worker: Any, **options: Any) -> None:
        self._entries: list[Any] = []
        super().__init__(worker, **options)

    def start(self, worker: Any) -> None:
        from tasks.settings import process_settings  # the application lists this step

        settings = process_settings()
        self._every_s, self._lease_s = settings.worker.sweep_s, settings.worker.lease_s
        self._prefix = settings.broker.key_prefix
        self._heartbeat = Heartbeat(settings.worker.heartbeat_file)
        self._ledger = open_ledger(settings, PARENT_PATIENCE_MS)
        queues = tuple(sorted(worker.app.amqp.queues.consume_from))
        self._me = Worker(worker_host(), os.getpid(), worker.concurrency, queues)
        self._looking = Looking(self._ledger.caller, self._me, settings)
        self._abandoned = Abandoned(self._ledger)
        # What happened while no worker was there to see it is put right by the first.
        self._some_are_gone = True
        self._parent_pid = int(os.environ.get(PARENT_PID_VARIABLE, "0"))
        self._check_server()
        self._keep()
        self._look(worker.timer)
        self._entries.append(worker.timer.call_repeatedly(self._every_s, self._keep))
        if self._parent_pid:
            self._entries.append(worker.timer.call_repeatedly(PARENT_LOOK_S, self._look_at_parent))

    def stop(self, worker: Any) -> None:
        if self._entries:
            while self._entries:
                self._entries.pop().cancel()
            self._next_look.cancel()
            self._looking.end()
            self._heartbeat.end()
            with contextlib.suppress(LedgerUnavailable):
                Workers(self._ledger.caller).leave(self._me)

    terminate = stop

    def _check_server(self) -> None:
        """Say once what of the broker's settings may cost jobs."""
        try:
            for warning in warnings_of(check_server(read_server(self._ledger.caller))):
                log.warning("%s", warning)
        except Exception as error:  # whether it serves is for others to find out
            log.warning("the settings of Redis could not be read: %s", error)

    def _keep(self) -> None:
        """One beat. Whatever goes wrong, the timer goes on: Redis may be back at the next."""
        try:
            TRAILS.kill_stalled(self._lease_s)
        except Exception as error:
            log.warning("processes that hang could not be looked for: %s", error)
        try:
            ttl_ms = int(self._every_s * MISSED_MAX * 1000)
            workers = Workers(self._ledger.caller)
            if workers.heartbeat(self._me, ttl_ms):
                self._some_are_gone = True
            self._heartbeat.beat()
            if self._parent_pid:
                note_queues(self._ledger.caller, self._me.queues)
            LOST.tell_again(self._ledger)  # before the sweep lets others begin these units
            found = sweep_running(self._ledger, windows(self._ledger), publisher(self._ledger))
            running = [job for job, swept in found.items() if swept.state is JobState.RUNNING]
            for job in self._abandoned.look(running):
                log.warning("job %s: its command is gone, and nobody can go on with it", job)
            remove_forgotten(self._ledger.caller, self._prefix)
            if self._some_are_gone:
                hosts = {worker.host for worker in workers.alive()}
                take_out_gone(self._ledger.caller, self._prefix, hosts)
                self._some_are_gone = False
        except Exception as error:
            log.warning("the ledger could not be swept: %s", error)

    def _look(self, timer: Any) -> None:
        """Look at what commands ask about, and come back: soon while a look is on its way."""
        try:
            self._looking.poll()
        except Exception as error:
            log.warning("looks of commands wait: %s", error)
        pause_s = WATCH_EVERY_S if self._looking.busy else ASK_EVERY_S
        self._next_look = timer.call_after(pause_s, self._look, (timer,))

    def _look_at_parent(self) -> None:
        """Stop this worker, softly, once the command that started it is gone."""
        if os.getppid() == self._parent_pid:
            return
        log.warning("the command that started this worker is gone: stopping")
        self._parent_pid = os.getppid()  # one signal is soft, a second would hurry
        os.kill(os.getpid(), signal.SIGTERM)
