"""Start commands quickly: fork them from a process that has imported their modules.

A command that does little spends nine tenths of its CPU time on imports: 1.5 s of 1.7 for a
load. `ForkServer` is the side of the tests, and `fork_client.py` that of shell scripts; this file,
run by its path, is the process that forks.
A fork has the arguments, environment, folder, and standard streams of the command that it becomes,
and ends as that does.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

#: What the commands are made of; what they need of other packages is read with it.
PACKAGES = ("config", "ringhaul", "producer")
#: Standard input, output, error, and the socket on which the exit code comes.
_STREAMS = 4
_CLIENT = Path(__file__).with_name("fork_client.py")


class ForkServer:
    """The process that forks, and commands that are forked from it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=self.environment,
                pass_fds=[theirs.fileno()],
            )
        self._control, self._one_at_a_time = ours, threading.Lock()

    @property
    def control(self) -> int:
        """The descriptor that `client` must inherit."""
        return self._control.fileno()

    @property
    def client(self) -> list[str]:
        """Words that, followed by arguments, stand for the command in a shell."""
        return [sys.executable, "-I", "-S", str(_CLIENT), str(self.control)]

    def close(self) -> None:
        """End the process that forks; nothing else runs by now."""
        self._control.close()
        self._process.wait()

    def run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stdin: bytes | None,
        timeout_s: float,
    ) -> tuple[int, bytes, bytes]:
        """Exit code (negative: a signal), standard output and standard error of a command."""
        (in_end, to_in), (from_out, out_end), (from_err, err_end) = os.pipe(), os.pipe(), os.pipe()
        if stdin is None:
            os.close(in_end)
            in_end = os.open(os.devnull, os.O_RDONLY)
        forked = self.start(arguments, environment, folder, (in_end, out_end, err_end))
        found: dict[int, bytes] = {}
        readers = [
            threading.Thread(target=_read_all, args=(end, found), daemon=True)
            for end in (from_out, from_err)
        ]
        writer = threading.Thread(target=_write_all, args=(to_in, stdin or b""), daemon=True)
        for thread in (*readers, writer):
            thread.start()
        deadline = time.monotonic() + timeout_s
        for thread in readers:
            thread.join(max(deadline - time.monotonic(), 0))
        try:
            code = forked.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            forked.kill()
            raise
        writer.join()
        return code, found[from_out], found[from_err]

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        streams: tuple[int, int, int],
    ) -> Forked:
        """Fork a command with these standard streams, which are closed here."""
        reply, theirs = socket.socketpair()
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
        }
        with self._one_at_a_time:
            socket.send_fds(self._control, [b"\n"], [*streams, theirs.fileno()])
            reply.sendall(json.dumps(request).encode() + b"\n")
            theirs.close()
            for end in streams:
                os.close(end)
            return Forked(arguments, reply)

    def start_piped(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        log: Path | None,
    ) -> Forked:
        """Fork a command without input. Its output goes to a file, or else to pipes."""
        in_end = os.open(os.devnull, os.O_RDONLY)
        if log is not None:
            out_end = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            return self.start(arguments, environment, folder, (in_end, out_end, os.dup(out_end)))
        (from_out, out_end), (from_err, err_end) = os.pipe(), os.pipe()
        forked = self.start(arguments, environment, folder, (in_end, out_end, err_end))
        forked.stdout, forked.stderr = open(from_out), open(from_err)  # noqa: SIM115
        return forked


class Forked:
    """A command that was forked, with what tests use of `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str], reply: socket.socket) -> None:
        self.args = arguments
        self._reply = reply
        self.pid = self._number()
        self.returncode: int | None = None
        self.stdout: TextIO | None = None
        self.stderr: TextIO | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None if it still runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return its exit code."""
        if self.returncode is None:
            ready, _, _ = select.select([self._reply], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(self._number())
            self._reply.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; return what is left of its standard output and standard error."""
        found: dict[int, str] = {}
        streams = [stream for stream in (self.stdout, self.stderr) if stream is not None]
        readers = [
            threading.Thread(target=_read_rest, args=(stream, found), daemon=True)
            for stream in streams
        ]
        for thread in readers:
            thread.start()
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in readers:
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0))
        self.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
        for thread in readers:
            thread.join()
        out, err = (found.get(id(stream), "") for stream in (self.stdout, self.stderr))
        return out, err

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        """Read the next number from the process that forks."""
        line = b""
        while not line.endswith(b"\n"):
            read = self._reply.recv(1)
            assert read, "the process that forks has ended"
            line += read
        return int(line)


def _read_rest(stream: TextIO, found: dict[int, str]) -> None:
    found[id(stream)] = stream.read()


def _read_all(end: int, found: dict[int, bytes]) -> None:
    with open(end, "rb") as file:
        found[end] = file.read()


def _write_all(end: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(end, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]


class _Forker:
    """The process that forks: it does what comes on its socket until the other end is closed."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._running: dict[int, socket.socket] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        # Ctrl-C ends the commands; this process ends with the tests.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> dict[str, Any] | None:
        """Return in each fork, with the command that it runs; and None at the end."""
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._tell_ends()
            if self._control.fileno() in ready:
                data, descriptors, _, _ = socket.recv_fds(self._control, 1, _STREAMS)
                if not data:
                    return None
                found = self._fork(descriptors)
                if found is not None:
                    return found

    def _fork(self, descriptors: Sequence[int]) -> dict[str, Any] | None:
        streams, reply = descriptors[:3], socket.socket(fileno=descriptors[3])
        with reply.makefile("r") as lines:
            wanted: dict[str, Any] = json.loads(lines.readline())
        pid = os.fork()
        if pid:
            for descriptor in streams:
                os.close(descriptor)
            self._running[pid] = reply
            reply.sendall(f"{pid}\n".encode())
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for mine in (self._control, reply, *self._running.values()):
            mine.close()
        os.close(self._woken)
        os.close(self._wake)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        return wanted

    def _tell_ends(self) -> None:
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._running.pop(pid) as reply, suppress(BrokenPipeError):
                reply.sendall(f"{status}\n".encode())


def _read_modules() -> None:
    importlib.import_module("ringhaul.__main__")  # the first, which sets how modules are read
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    del sys.modules["ringhaul.__main__"], sys.modules["producer.__main__"]  # what a fork runs
    gc.collect()
    gc.freeze()


def _become(wanted: Mapping[str, Any]) -> None:
    """Be `python -P -m ringhaul` with these arguments from now on."""
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    # What Python knows of its streams is what they were when it began.
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin)  # type: ignore[misc]
    sys.argv = ["ringhaul", *wanted["arguments"]]
    runpy.run_module("ringhaul", run_name="__main__", alter_sys=True)


def _stream(number: int, mode: str, like: TextIO) -> TextIO:
    raw = open(number, mode + "b", closefd=False)  # noqa: SIM115 - as Python's own
    return io.TextIOWrapper(raw, like.encoding, like.errors)


def main() -> None:
    """Fork until the tests end."""
    _read_modules()
    wanted = _Forker(socket.socket(fileno=int(sys.argv[1]))).serve()
    if wanted is not None:
        _become(wanted)


if __name__ == "__main__":
    main()
