"""Workers that a command starts for its own job, if no broker is configured.

They use the same code as a fleet: a broker, `ringhaul worker`, messages. The broker is the local
stack's Valkey, so that `status` and `errors` find the job later. The worker is a child process,
which is restarted if it dies and stopped when the command ends.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from config.cores import usable_cores
from config.settings import Loaded
from producer.outputs.state_folder import using_state
from ringhaul.errors import RinghaulError, UsageError, WorkersUnavailable
from ringhaul.ledger.reading import JobTaken
from ringhaul.ledger.workers import Worker
from ringhaul.run_folder import remove_dead
from tasks.connect import PARENT_PATIENCE_MS, open_ledger
from tasks.names import PARENT_PID_VARIABLE, READS_VARIABLE
from tasks.private_queues import private_queue, remove_queue
from tasks.settings import use_settings

#: How the id of a load starts.
LOAD_PREFIX = "ld"
#: A worker that dies this often within a job is not restarted.
RESTARTS_MAX = 5
STOP_TIMEOUT_S = 20.0
#: Within this time a worker acknowledges the message of a committed unit, which takes some
#: milliseconds; an unacknowledged one would stay in the broker for hours.
ACKNOWLEDGE_S = 0.05
#: Number of past jobs whose logs are kept.
LOGS_KEPT = 20


def default_workers() -> int:
    """Return the number of embedded worker processes: one for each core that this process may
    use."""
    return usable_cores()


class EmbeddedBroker:
    """The private Valkey, which runs for the length of the block."""

    def __init__(self, state_dir: Path) -> None:
        from producer.local.valkey import EmbeddedValkey  # commands that only read do not need it

        self._state_dir = state_dir
        self._valkey = EmbeddedValkey(state_dir / "valkey")

    def __enter__(self) -> Self:
        with using_state(self._state_dir):
            self._valkey.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._valkey.release()

    def in_settings(self, loaded: Loaded) -> Loaded:
        """Return the settings with this broker, which child processes then inherit."""
        return loaded.with_flags(
            {
                "broker.url": f"redis://127.0.0.1:{self._valkey.port}/0",
                "broker.password_file": self._valkey.password_file,
            }
        )

    def revive(self) -> None:
        """Restart the server if it died; its append-only file restores the ledger."""
        if not self._valkey.running():
            self._valkey.release()
            self._valkey.acquire()


def enter_broker(stack: ExitStack, loaded: Loaded) -> tuple[Loaded, EmbeddedBroker | None]:
    """Start the embedded broker, which `stack` ends, unless a broker is configured. Return the
    settings with it, which Celery in this process uses from now on, and the broker."""
    broker = None
    if loaded.is_embedded:
        broker = stack.enter_context(EmbeddedBroker(loaded.settings.state_dir))
        loaded = broker.in_settings(loaded)
    use_settings(loaded)
    return loaded, broker


class EmbeddedWorker:
    """`ringhaul worker` for one job, as a child process with a log file."""

    def __init__(
        self, loaded: Loaded, concurrency: int, job_id: str, further: Sequence[str] = ()
    ) -> None:
        """`loaded`: the worker's settings, with the broker. `further`: ids of other jobs whose
        private queues it also consumes.

        Processes that are traced send their last spans at their end, so they get time for it.
        """
        self._loaded, self._concurrency, self._job_id = loaded, concurrency, job_id
        self._settings = settings = loaded.settings
        self._queues = tuple(map(private_queue, (job_id, *further)))
        #: A command may have several: Celery's names of them must differ.
        self._suffix = f"-{job_id}" if further else ""
        self._needs_time = bool(settings.tracing.endpoint)
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
        remove_dead(self._settings.state_dir)
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        remove_dead(self._settings.state_dir)  # the worker's: it was killed, if its job had ended
        if self._out is not None:
            self._out.close()
        if isinstance(error, JobTaken):  # queue and log belong to the command that has the job
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
        """The worker as it registers itself in the ledger."""
        return Worker.of_this_version(
            socket.gethostname(), self.pid, self._concurrency, self._queues
        )

    def dismiss(self) -> bool:
        """Kill the worker and its processes; return whether that was done.

        Only for an ended job: nothing is left to give back, and Celery would take 1.5 s to stop.
        """
        if self._needs_time or self._process is None or self._process.poll() is not None:
            return False
        time.sleep(ACKNOWLEDGE_S)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return True

    def revive(self) -> None:
        """Restart the worker if it died. Raises `WorkersUnavailable` if it keeps dying."""
        assert self._process is not None
        if self._process.poll() is None:
            return
        if self._restarts >= RESTARTS_MAX:
            raise WorkersUnavailable(f"the worker process keeps dying; see {self.log}")
        self._restarts += 1
        self._start()

    def stop(self, *, now: bool = False) -> None:
        """Stop the worker: softly (it gives its units back), or at once."""
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
        """Remove the job's queue. Without Redis, the keepers of other workers do it later."""
        with suppress(RinghaulError):
            caller = open_ledger(self._settings, PARENT_PATIENCE_MS).caller
            remove_queue(caller, self._settings.broker.key_prefix, self._job_id)
            caller.client.close()

    def _forget_old_logs(self) -> None:
        ages: list[tuple[float, Path]] = []
        for path in self.log.parent.glob("*.log"):
            with suppress(FileNotFoundError):  # another command removed the same one
                ages.append((path.stat().st_mtime, path))
        for _, path in sorted(ages)[:-LOGS_KEPT]:
            path.unlink(missing_ok=True)

    def _start(self) -> None:
        # In a new session, because the command handles Ctrl-C in the terminal.
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "ringhaul", "worker"),
                *("--concurrency", str(self._concurrency), "--queues", ",".join(self._queues)),
                *("--hostname", f"embedded-{os.getpid()}{self._suffix}@%h"),
                # It is stopped once its job has ended, when there is nothing to wait for.
                "worker.soft_shutdown_timeout=0",
                # It needs no control messages, and their queue would remain if it were killed.
                "worker.enable_remote_control=false",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=self._loaded.environment()
            | {
                # If this process is killed, its worker notices and ends too.
                PARENT_PID_VARIABLE: str(os.getpid()),
                # The few processes of one host need not spread their start.
                "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
                READS_VARIABLE: str(int(not self._loads)),
            },
        )
