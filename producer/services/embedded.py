"""Workers of our own for the length of a command, when no broker is configured.

The same code path as a fleet: a broker, `ringhaul worker`, messages. The Valkey is the one of the
local stack, so that `status` and `errors` find the job afterwards; the worker is a child process
that is started again if it dies and stopped when the command ends.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from config.cores import usable_cores
from config.settings import Settings
from producer.outputs.state_folder import using_state
from ringhaul.errors import ClusterError, RinghaulError, UsageError
from tasks.private_queues import private_queue, remove_queue

if TYPE_CHECKING:
    from ringhaul.ledger.workers import Worker

#: "0" tells a worker that it only takes units of loads (see `tasks.signals`).
READS_VARIABLE = "_RINGHAUL_READS"
#: Services of a load's id.
LOAD_PREFIX = "ld"
#: A worker that dies this often within a job is not started again.
RESTARTS_MAX = 5
STOP_TIMEOUT_S = 20.0
#: In this time a worker acknowledges the message of a unit that it committed, which takes some
#: milliseconds; one that stays would lie about in the broker for hours.
ACKNOWLEDGE_S = 0.05
#: Logs of this many past jobs stay.
LOGS_KEPT = 20
_URL_VARIABLE, _PASSWORD_VARIABLE = "RINGHAUL_BROKER_URL", "RINGHAUL_BROKER_PASSWORD_FILE"


def default_workers() -> int:
    """Embedded worker processes: one for each core this process may use."""
    return usable_cores()


class EmbeddedBroker:
    """The private Valkey. While it is held, processes that are started find it by environment."""

    def __init__(self, state_dir: Path) -> None:
        from producer.local.valkey import EmbeddedValkey  # not for commands that only ask

        self._state_dir = state_dir
        self._valkey = EmbeddedValkey(state_dir / "valkey")

    def __enter__(self) -> Self:
        with using_state(self._state_dir):
            self._valkey.acquire()
        names = (_URL_VARIABLE, _PASSWORD_VARIABLE)
        self._before = {name: os.environ.get(name) for name in names}
        # For the processes that this one starts, and for Celery in this one.
        for name, value in zip(names, self._broker_settings().values(), strict=True):
            os.environ[name] = str(value)
        return self

    def __exit__(self, *_: object) -> None:
        # A command may look at a job first, and then begin as if it had not.
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._valkey.release()

    def in_settings(self, settings: Settings) -> Settings:
        """These settings, with this broker as theirs."""
        broker = settings.broker.model_copy(update=self._broker_settings())
        return settings.model_copy(update={"broker": broker})

    def _broker_settings(self) -> dict[str, Any]:
        return {
            "url": f"redis://127.0.0.1:{self._valkey.port}/0",
            "password_file": self._valkey.password_file,
        }

    def revive(self) -> None:
        """Start the server again if it died; its append-only file brings the ledger back."""
        if not self._valkey.running():
            self._valkey.release()
            self._valkey.acquire()


class EmbeddedWorker:
    """`ringhaul worker` for one job, as a child process that logs to a file of its own."""

    def __init__(self, settings: Settings, concurrency: int, job_id: str) -> None:
        """`settings`: with the broker. Processes that are profiled write at their end: they are
        given the time."""
        self._settings, self._concurrency, self._job_id = settings, concurrency, job_id
        self._queue = private_queue(job_id)
        self._profiled = settings.worker.profile != "off"
        self._loads = job_id.startswith(f"{LOAD_PREFIX}-")
        self.log = settings.state_dir / "logs" / f"{job_id}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._out: IO[bytes] | None = None
        self._restarts = 0

    def __enter__(self) -> Self:
        with using_state(self.log.parent.parent):
            self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._forget_old_logs()
            self._out = self.log.open("ab")
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        from ringhaul.ledger.reading import JobTaken  # redis-py: not for commands that only ask

        self.stop()
        if self._out is not None:
            self._out.close()
        if isinstance(error, JobTaken):  # queue and log are those of the command that has the job
            return
        self._remove_queue()
        if isinstance(error, UsageError):  # there was no job
            self.log.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """Process id of the worker's parent process."""
        assert self._process is not None
        return self._process.pid

    @property
    def registered(self) -> Worker:
        """How the worker counts itself as alive in the ledger."""
        from ringhaul.ledger.workers import Worker  # redis-py: not for commands that only ask

        return Worker(socket.gethostname(), self.pid, self._concurrency, (self._queue,))

    def dismiss(self) -> bool:
        """Kill the worker and its processes; says whether that was done.

        For a job that is over: nothing is left to give back, and Celery takes 1.5 s to end.
        """
        if self._profiled or self._process is None or self._process.poll() is not None:
            return False
        time.sleep(ACKNOWLEDGE_S)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return True

    def revive(self) -> None:
        """Start the worker again if it died. Raises `ClusterError` when it keeps dying."""
        assert self._process is not None
        if self._process.poll() is None:
            return
        if self._restarts >= RESTARTS_MAX:
            raise ClusterError(f"the worker process keeps dying; see {self.log}")
        self._restarts += 1
        self._start()

    def stop(self, *, now: bool = False) -> None:
        """Stop the worker: softly (its units are given back), or at once."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGKILL if now else signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if process.poll() is None:
            process.kill()
            process.wait()

    def _remove_queue(self) -> None:
        """With Redis away it is left to the keepers of other workers."""
        from tasks.connect import PARENT_PATIENCE_MS, open_ledger

        with suppress(RinghaulError):
            caller = open_ledger(self._settings, PARENT_PATIENCE_MS).caller
            remove_queue(caller, self._settings.broker.key_prefix, self._job_id)
            caller.client.close()

    def _forget_old_logs(self) -> None:
        ages: list[tuple[float, Path]] = []
        for path in self.log.parent.glob("*.log"):
            with suppress(FileNotFoundError):  # another command forgets the same ones
                ages.append((path.stat().st_mtime, path))
        for _, path in sorted(ages)[:-LOGS_KEPT]:
            path.unlink(missing_ok=True)

    def _start(self) -> None:
        from tasks.parent.housekeeping import (
            PARENT_PID_VARIABLE,  # Celery: not for commands that only look
        )

        # A session of its own: Ctrl-C in the terminal is for the command to handle.
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "producer", "worker"),
                *("--concurrency", str(self._concurrency), "--queues", self._queue),
                *("--hostname", f"embedded-{os.getpid()}@%h"),
                # It is stopped when its job is over: waiting for units would be idle time.
                "worker.soft_shutdown_timeout=0",
                # Nobody steers it by messages, and the queue for them stays when it is killed.
                "worker.enable_remote_control=false",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ
            | {
                # If this process is killed, its worker notices and ends too.
                PARENT_PID_VARIABLE: str(os.getpid()),
                # A handful of processes on one host is no storm: no need to spread their start.
                "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
                READS_VARIABLE: str(int(not self._loads)),
            },
        )
