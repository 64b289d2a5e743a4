"""The keeper: a timer in each worker that reports the host as alive and sweeps the jobs.

It runs in the worker's parent process, on Celery's timer: not in a thread (children fork from this
process), and not as a task (which could queue behind units). Each worker reports its heartbeat, and
a few of the fleet sweep (`rounds`). Any number may sweep at once. The keeper also:

- touches the heartbeat file for probes (`heartbeat`), once Redis has accepted the heartbeat: the
  file grows old if this process hangs or Redis is unreachable;
- checks inputs and outputs for commands that plan a job (`preflight`), even while all pool
  processes are busy;
- reports lost processes to the ledger that could not be reported at once (`lost`);
- removes queues that commands left behind, once their jobs are forgotten (`private_queues`);
- removes workers that are gone from Celery's table (`mailboxes`);
- ends abandoned jobs (`abandoned_jobs`);
- says how many messages were dropped (`transport`);
- removes the run folders of processes that were killed (`ringhaul.run_folder`);
- takes samples of running jobs for their history (`sampling`);
- starts stand-ins for processes that wait for a rate limit (`stand_ins`);
- stops an embedded worker whose command was killed and could not stop it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from typing import Any

from celery import bootsteps

from ringhaul import __version__
from ringhaul.errors import LedgerUnavailable, RinghaulError
from ringhaul.ledger.ledger import OTHERS_DELAY_MS
from ringhaul.ledger.server import read_server
from ringhaul.ledger.server_checks import check_server, warnings_of
from ringhaul.ledger.workers import Worker, Workers
from ringhaul.run_folder import remove_dead
from tasks.connect import PARENT_PATIENCE_MS, open_ledger
from tasks.names import PARENT_PID_VARIABLE
from tasks.node_name import worker_host
from tasks.parent.heartbeat import Heartbeat
from tasks.parent.preflight import WATCH_EVERY_S, HostChecks, pause_between_polls_s
from tasks.parent.rounds import Rounds
from tasks.parent.stand_ins import LOOK_S, StandIns
from tasks.parent.trails import TRAILS
from tasks.settings import loaded_settings
from tasks.transport import DROPPED, HANDED_BACK

log = logging.getLogger(__name__)

PARENT_LOOK_S = 1.0
#: How soon the units of messages for tasks of other versions are handed back.
HAND_BACK_S = 1.0


class Keeper(bootsteps.StartStopStep):  # type: ignore[misc]
    """The worker's boot step that starts and stops the keeper."""

    requires = {"celery.worker.components:Timer"}  # noqa: RUF012 - Celery reads a class attribute

    def __init__(self, worker: Any, **options: Any) -> None:
        self._entries: list[Any] = []
        super().__init__(worker, **options)

    def start(self, worker: Any) -> None:
        loaded = loaded_settings()
        settings = loaded.settings
        every_s, self._lease_s = settings.worker.sweep_s, settings.worker.lease_s
        self._state_dir = settings.state_dir
        self._heartbeat = Heartbeat(settings.worker.heartbeat_file)
        self._ledger = open_ledger(settings, PARENT_PATIENCE_MS)
        queues = tuple(sorted(worker.app.amqp.queues.consume_from))
        self._me = Worker.of_this_version(worker_host(), os.getpid(), worker.concurrency, queues)
        self._checks = HostChecks(self._ledger.caller, self._me, settings, loaded.environment())
        self._parent_pid = int(os.environ.get(PARENT_PID_VARIABLE, "0"))
        self._rounds = Rounds(
            self._ledger,
            self._me,
            every_s=every_s,
            prefix=settings.broker.key_prefix,
            heartbeat=self._heartbeat,
            notes_queues=bool(self._parent_pid),
        )
        self._check_server()
        self._keep()
        self._look(worker.timer)
        self._entries.append(worker.timer.call_repeatedly(every_s, self._keep))
        self._entries.append(worker.timer.call_repeatedly(HAND_BACK_S, self._hand_back))
        if self._parent_pid:
            self._entries.append(worker.timer.call_repeatedly(PARENT_LOOK_S, self._look_at_parent))
        else:  # an embedded worker has the units of one job only
            self._prefix = settings.broker.key_prefix
            most = min(worker.concurrency, settings.worker.stand_ins_max)
            self._stand_ins = StandIns(most, waits=TRAILS.waits, messages_wait=self._messages_wait)
            again = worker.timer.call_repeatedly(LOOK_S, self._replace_held, (worker,))
            self._entries.append(again)

    def stop(self, worker: Any) -> None:
        if self._entries:
            while self._entries:
                self._entries.pop().cancel()
            self._next_look.cancel()
            self._checks.end()
            self._heartbeat.end()
            DROPPED.report(at_once=True)
            with contextlib.suppress(LedgerUnavailable):
                Workers(self._ledger.caller).leave(self._me)

    terminate = stop

    def _check_server(self) -> None:
        """Warn once about broker settings that endanger jobs."""
        try:
            for warning in warnings_of(check_server(read_server(self._ledger.caller))):
                log.warning("%s", warning)
        except Exception as error:  # other code reports an unavailable broker
            log.warning("the settings of Redis could not be read: %s", error)

    def _keep(self) -> None:
        """Run one beat. It never raises, so the timer continues: Redis may be back by the next."""
        DROPPED.report()
        remove_dead(self._state_dir)
        try:
            TRAILS.kill_stalled(self._lease_s)
        except Exception as error:
            log.warning("could not look for hung processes: %s", error)
        try:
            self._checks.ask_every_s = pause_between_polls_s(self._rounds.keep())
        except Exception as error:
            log.warning("could not sweep the ledger: %s", error)

    def _replace_held(self, worker: Any) -> None:
        """Start or end stand-ins for processes that wait for a rate limit."""
        consumer = worker.consumer
        if consumer is None or consumer.blueprint.state != bootsteps.RUN:  # not connected yet
            return
        try:
            self._stand_ins.look(worker.pool, consumer._update_prefetch_count)
        except Exception as error:
            log.warning("could not look for processes that wait for a rate limit: %s", error)

    def _messages_wait(self) -> bool:
        """Return whether a message waits in a queue of this worker."""
        command = self._ledger.caller.command
        return any(command("LLEN", self._prefix + queue) for queue in self._me.queues)

    def _hand_back(self) -> None:
        """Hand back the units of messages for tasks that only other versions have."""
        for (job, unit, epoch), task in HANDED_BACK.take().items():
            reason = f"{worker_host()}: this version ({__version__}) has no task {task}"
            log.error("unit %s of %s is left to others: %s", unit, job, reason)
            try:
                self._ledger.decline(job, unit, epoch, delay_ms=OTHERS_DELAY_MS, reason=reason)
            except RinghaulError as error:  # the sweep finds the unit
                log.warning("unit %s of %s could not be handed back: %s", unit, job, error)

    def _look(self, timer: Any) -> None:
        """Poll preflight checks, and schedule the next poll: soon while a check is running."""
        try:
            self._checks.poll()
        except Exception as error:
            log.warning("preflight checks of commands are delayed: %s", error)
        pause_s = WATCH_EVERY_S if self._checks.busy else self._checks.ask_every_s
        self._next_look = timer.call_after(pause_s, self._look, (timer,))

    def _look_at_parent(self) -> None:
        """Stop this worker softly once the command that started it has ended."""
        if os.getppid() == self._parent_pid:
            return
        log.warning("the command that started this worker has ended: stopping")
        self._parent_pid = os.getppid()  # only one signal: a second would force the shutdown
        os.kill(os.getpid(), signal.SIGTERM)
