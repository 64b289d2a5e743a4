"""The shared Valkey: its start, its stop, and its data."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from producer.local.errors import LocalStackError
from producer.local.valkey import EmbeddedValkey
from tests.services import restart_valkey

#: A command that uses the server and dies without releasing it.
DIE_AS_USER = """
import os, sys
from pathlib import Path
from producer.local.valkey import EmbeddedValkey
valkey = EmbeddedValkey(Path(sys.argv[1]))
valkey.acquire()
print("acquired", flush=True)
sys.stdin.read()
os._exit(1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose server, if any, is stopped at the end of the test."""
    path = tmp_path / "val key"
    yield path
    assert EmbeddedValkey(path).unkeep(), "a user is left"


def client(valkey: EmbeddedValkey) -> redis.Redis:
    return redis.Redis.from_url(valkey.url, decode_responses=True)


def test_ctrl_c_does_not_keep_the_last_user_from_stopping_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    valkey = EmbeddedValkey(folder)
    valkey.acquire()
    stop = valkey._stop

    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)  # long enough for Python to notice
        stop()

    monkeypatch.setattr(valkey, "_stop", interrupted)
    before = signal.getsignal(signal.SIGINT)
    valkey.release()
    assert not valkey.running()
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):  # afterwards it has its effect again
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


def test_the_last_user_stops_valkey_and_the_data_stays(folder: Path) -> None:
    first, second = EmbeddedValkey(folder), EmbeddedValkey(folder)
    first.acquire()
    second.acquire()
    assert first.url == second.url
    with client(first) as one, client(second) as two:
        one.set("job", "ld-1")
        assert two.get("job") == "ld-1"
    first.release()
    assert second.running()
    second.release()
    assert not second.running()

    with EmbeddedValkey(folder) as third, client(third) as three:
        assert three.get("job") == "ld-1"


def test_valkey_s_configuration_is_safe_for_a_ledger(folder: Path) -> None:
    with EmbeddedValkey(folder) as valkey, client(valkey) as connection:
        wanted = {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "bind": "127.0.0.1",
        }
        for name, value in wanted.items():
            assert connection.config_get(name) == {name: value}
        assert connection.info("server")["redis_version"] >= "7.2"


def test_the_password_is_required_and_never_visible(folder: Path) -> None:
    with EmbeddedValkey(folder) as valkey:
        password = valkey.password_file.read_text()
        assert len(password) >= 32
        assert valkey.pid is not None
        assert not any(password in word for word in psutil.Process(valkey.pid).cmdline())
        for path in folder.rglob("*"):
            if path.is_file() and password.encode() in path.read_bytes():
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with (
            redis.Redis(port=valkey.port, retry=Retry(NoBackoff(), 0)) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()


def test_a_kept_valkey_needs_no_users(folder: Path) -> None:
    valkey = EmbeddedValkey(folder)
    valkey.keep()
    assert valkey.running()
    assert valkey.answers()
    assert not valkey.in_use()
    with EmbeddedValkey(folder) as user:
        assert user.pid == valkey.pid
        assert valkey.in_use()
        assert not valkey.unkeep(), "it has a user"
        assert valkey.running()
    assert not valkey.running(), "it must stop once it is no longer kept"


def test_a_dead_user_does_not_keep_valkey_running(folder: Path) -> None:
    user = subprocess.Popen(
        [sys.executable, "-c", DIE_AS_USER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with user:
        assert user.stdout is not None
        assert user.stdout.readline() == "acquired\n"
        valkey = EmbeddedValkey(folder)
        assert valkey.in_use()
        user.kill()
    assert not valkey.in_use()
    assert valkey.running(), "an orphan that the next user finds"
    with valkey:
        pass
    assert not valkey.running()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_restarted_valkey_has_its_data_and_its_port(folder: Path, number: signal.Signals) -> None:
    with EmbeddedValkey(folder) as valkey, client(valkey) as connection:
        connection.set("job", "ld-1")
        restart_valkey(valkey, number)
        assert connection.get("job") == "ld-1"


def test_a_preferred_port_that_is_taken_is_not_used(folder: Path, tmp_path: Path) -> None:
    with EmbeddedValkey(tmp_path / "other") as other:
        valkey = EmbeddedValkey(folder)
        valkey.acquire(port_preferred=other.port)
        assert valkey.port != other.port
        assert valkey.answers()
        valkey.release()


def test_too_few_open_files_are_named(folder: Path) -> None:
    started = subprocess.run(
        ["bash", "-c", f"ulimit -n 24; exec {sys.executable} -P -m ringhaul status"],
        env=os.environ | {"RINGHAUL_STATE_DIR": str(folder)},
        capture_output=True,
        text=True,
    )
    assert started.returncode == 4, started
    assert started.stderr.startswith("error: only 24 files may be open at a time"), started
    assert started.stderr.count("\n") == 1 and "ulimit -n" in started.stderr


def test_a_server_that_cannot_start_reports_why(folder: Path) -> None:
    with EmbeddedValkey(folder):
        pass
    data = next((folder / "appendonlydir").glob("*.manifest"))
    data.write_text("nonsense\n")
    valkey = EmbeddedValkey(folder)
    before = time.monotonic()
    with pytest.raises(LocalStackError, match=r"Valkey ended while starting") as caught:
        valkey.acquire()
    assert time.monotonic() - before < 20
    assert "manifest" in str(caught.value)
    last = str(caught.value).splitlines()[-1]
    assert last == "Valkey ended while starting. Invalid AOF manifest file format"
    assert str(valkey.log) in str(caught.value)
    assert not valkey.running()
    assert os.listdir(folder)
