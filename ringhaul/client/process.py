"""Run the command: start it on its leash, read its messages, end it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ringhaul.client import leash
from ringhaul.client.errors import ClientError, CommandMissing, TimedOut, command_error
from ringhaul.client.folder import Folder

logger = logging.getLogger("ringhaul.client")

#: The command also writes here which error it ends with.
ERROR_FILE_VARIABLE = "_RINGHAUL_ERROR_FILE"
#: Names the file with the password.
PASSWORD_VARIABLE = "RINGHAUL_CLUSTER_PASSWORD_FILE"
#: The last lines on standard error that an exception keeps.
NOTES_MAX = 100


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What went wrong, in the command's words."""

    #: The error's class, such as `ClusterUnavailable`, and its bases; empty: not reported.
    names: tuple[str, ...] = ()
    message: str


class RunningCommand:
    """A command that runs. `lines` are read in the caller's thread."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], error_file: Path) -> None:
        self._error_file, self._timed_out = error_file, False
        self._notes: deque[str] = deque(maxlen=NOTES_MAX)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, str(error_file.parent), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**env, ERROR_FILE_VARIABLE: str(error_file)},
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def notes(self) -> tuple[str, ...]:
        """The last lines on standard error."""
        return tuple(self._notes)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of standard output until the command ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:  # noqa: UP028 - `yield from` would close it
            yield line

    def wait(self) -> int:
        """Return the exit code, once everything is read."""
        self._listener.join()
        return self._process.wait()

    def press(self, key: bytes) -> None:
        """Send Ctrl-C (`i`) or SIGKILL (`k`) to the command, unless it has ended."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(key)
            self._process.stdin.flush()

    def expire(self) -> None:
        """Interrupt the command, since its time is over."""
        self._timed_out = True
        self.press(b"i")

    def end(self) -> None:
        """Interrupt the command and wait for its end. A second Ctrl-C of the user is a second one
        for the command; a third kills it."""
        for key in (b"i", b"i", b"k"):
            with suppress(KeyboardInterrupt):
                self.press(key)
                assert self._process.stdout is not None
                while self._process.stdout.read(1 << 16):
                    pass
                self.wait()
                return

    def close(self) -> None:
        """Release the pipes of a command that has ended."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with suppress(OSError):
                stream.close()

    def ended(self) -> Ended:
        """Wait for the command, and return how it ended."""
        return Ended(
            exit_code=self.wait(),
            failure=self._failure(),
            notes=self.notes,
            timed_out=self._timed_out,
        )

    def _failure(self) -> Failure:
        """Return what the command ended with: from its report, else from standard error."""
        with suppress(OSError, ValueError):
            report = json.loads(self._error_file.read_text("utf-8"))
            return Failure(names=tuple(report["errors"]), message=report["message"])
        said = [note.removeprefix("error: ") for note in self._notes if note.startswith("error: ")]
        return Failure(message=(said or list(self._notes) or ["it said nothing"])[-1])

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            note = line.decode("utf-8", "replace").rstrip()
            if note:
                self._notes.append(note)
                logger.info("%s", note)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    exit_code: int
    failure: Failure
    notes: tuple[str, ...]
    timed_out: bool

    def error(self) -> ClientError:
        """Return the error of a command that ended without a result."""
        code, message = self.exit_code, self.failure.message
        if self.timed_out:
            return TimedOut("it took too long, and was interrupted", job=None, exit_code=code)
        if code == leash.NOT_STARTED:
            return CommandMissing(f"the command cannot be started: {message}", exit_code=code)
        return command_error(self.failure.names, message, code, notes=self.notes)


@contextmanager
def running(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    password: str | None = None,
    timeout_s: float | None = None,
) -> Iterator[RunningCommand]:
    """Run a command during the block, in the environment of this process with `env` added. A block
    that ends early, by Ctrl-C or by an error, interrupts it and waits for its end.

    `password`: the cluster's; the command reads it from a file that only this user can read.
    `timeout_s`: the command is interrupted after this many seconds.
    """
    with Folder().of_call() as folder:
        whole = {**os.environ, **env}
        if password is not None:
            whole[PASSWORD_VARIABLE] = _write_private(Path(folder) / "password", password)
        command = RunningCommand(argv, whole, Path(folder) / "error.json")
        timer = threading.Timer(timeout_s or 0.0, command.expire)
        timer.daemon = True
        try:
            if timeout_s is not None:
                timer.start()
            yield command
            command.wait()
        except BaseException:
            command.end()
            raise
        finally:
            timer.cancel()
            command.close()


def _write_private(path: Path, text: str) -> str:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return str(path)


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    on_line: Callable[[bytes], None],
    *,
    password: str | None = None,
    timeout_s: float | None = None,
) -> Ended:
    """Run a command to its end; `on_line` gets the lines of its standard output. The rest is as
    for `running`."""
    with running(argv, env, password=password, timeout_s=timeout_s) as command:
        for line in command.lines():
            on_line(line)
        return command.ended()
