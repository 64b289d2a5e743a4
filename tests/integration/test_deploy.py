"""The containers' start-up steps, run without containers."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
import redis

from producer.local.ports import choose_port
from producer.local.valkey import find_server

DEPLOY = Path(__file__).parents[2] / "deploy"


def init_volumes(folder: Path) -> tuple[Path, Path, Path]:
    """Run the compose file's `init` on empty folders: those of secrets, Redis and Grafana."""
    secrets, data, metrics, pages = (folder / name for name in ("secrets", "data", "p", "g"))
    for path in (secrets, data, metrics, pages):
        path.mkdir(exist_ok=True)
    arguments = [DEPLOY / "init-volumes.sh", DEPLOY / "valkey.conf", secrets, data, metrics, pages]
    owner = f"{os.getuid()}:{os.getgid()}"
    subprocess.run(
        ["sh", *map(str, arguments)], env={**os.environ, "OWNER": owner}, check=True, timeout=20
    )
    return secrets, data, pages


def test_each_password_is_random_private_and_stays(tmp_path: Path) -> None:
    secrets, _, pages = init_volumes(tmp_path)
    passwords = {path: path.read_text() for path in (secrets / "redis_password", *pages.iterdir())}
    assert [path.name for path in passwords] == ["redis_password", "admin_password"]
    for password in passwords.values():
        assert len(password) == 64 and int(password, 16) > 0
    assert sorted(path.name for path in secrets.iterdir()) == ["redis_password", "valkey.conf"]
    for path in (*secrets.iterdir(), *pages.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    init_volumes(tmp_path)
    assert passwords == {path: path.read_text() for path in passwords}
    (tmp_path / "other").mkdir()
    other, _, others = init_volumes(tmp_path / "other")
    there = {(other / "redis_password").read_text(), (others / "admin_password").read_text()}
    assert len(there | set(passwords.values())) == 4


def test_the_broker_starts_with_its_configuration(tmp_path: Path) -> None:
    secrets, data, _ = init_volumes(tmp_path)
    port = choose_port(["127.0.0.1"])
    command = [str(find_server()), str(secrets / "valkey.conf"), "--bind", "127.0.0.1"]
    server = subprocess.Popen([*command, "--port", str(port)], cwd=data, stdout=subprocess.DEVNULL)
    password = (secrets / "redis_password").read_text()
    try:
        with redis.Redis(port=port, password=password) as client:
            wait_until_it_answers(client)
            assert client.config_get("appendonly", "maxmemory-policy") == {
                "appendonly": "yes",
                "maxmemory-policy": "noeviction",
            }
        assert (data / "appendonlydir").is_dir()
        with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
    finally:
        server.terminate()
        server.wait(timeout=20)


def wait_until_it_answers(client: redis.Redis, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            client.ping()
            return
        except redis.ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
