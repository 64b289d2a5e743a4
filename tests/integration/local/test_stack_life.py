"""The life of a local stack of one node: up, again, down, up, broken, repaired, wiped."""

import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from config.settings import load_settings
from producer.commands.local import local
from producer.local import processes
from producer.local.cassandra import answers_cql
from producer.local.errors import LocalStackError
from producer.local.stack import Stack
from ringhaul.errors import UsageError
from tests.services import connected, user_cache_dir


@pytest.fixture
def own_stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack that is not up yet, with settings that name it."""
    with tempfile.TemporaryDirectory(prefix="ringhaul state-") as folder:
        for name in [name for name in os.environ if name.startswith("RINGHAUL_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("RINGHAUL_STATE_DIR", folder)
        monkeypatch.setenv("RINGHAUL_CACHE_DIR", str(user_cache_dir()))
        monkeypatch.chdir(folder)  # away from any ringhaul.toml
        stack = Stack(Path(folder), user_cache_dir())
        yield stack
        stack.down(wipe=True)


def command(*arguments: str) -> Result:
    return CliRunner().invoke(local, list(arguments), catch_exceptions=False)


def test_life(own_stack: Stack, tmp_path: Path) -> None:
    steps: list[str] = []
    started = own_stack.up(any_port=True, on_progress=lambda step: steps.append(step.text))
    assert started.nodes_started == 1
    assert started.valkey_started
    assert any(text.startswith("starting Cassandra") for text in steps)
    ends = started.endpoints
    assert answers_cql("127.0.0.1", ends.port)

    with connected(ends) as session:
        assert session.execute("SELECT release_version FROM system.local").one()[0] == "5.0.9"
        session.execute(
            "CREATE KEYSPACE kept WITH replication = "
            "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.execute("CREATE TABLE kept.t (id int PRIMARY KEY, v text)")
        session.execute("INSERT INTO kept.t (id, v) VALUES (1, 'before')")

    # Other commands use it if no cluster is configured.
    loaded = load_settings()
    assert loaded.settings.cluster.port == ends.port
    assert loaded.settings.cluster.local_dc == "datacenter1"
    assert loaded.origins["cluster.port"] == loaded.origins["broker.url"] == "local stack"
    assert loaded.settings.broker.url == ends.broker_url

    # A second `up` changes nothing, with a message.
    pids = [server.pid for server in own_stack.status().servers]
    again = command("up")
    assert again.exit_code == 0
    assert "already up" in again.stderr
    assert f"127.0.0.1 port {ends.port}" in again.stderr
    assert again.stdout == ""
    with pytest.raises(UsageError, match="--heap 2G: the nodes run already"):
        own_stack.up(heap="2G")
    assert [server.pid for server in own_stack.status().servers] == pids

    # The environment works in a shell, with blanks in its paths, and contains no secret.
    env = command("env")
    assert env.exit_code == 0
    password = ends.broker_password_file.read_text()
    assert password not in env.stdout
    shown = subprocess.run(
        ["/bin/sh", "-c", f'eval {shlex.quote(env.stdout)}; cat "$RINGHAUL_BROKER_PASSWORD_FILE"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == password
    assert f"export RINGHAUL_CLUSTER_PORT={ends.port}\n" in env.stdout

    status = command("status")
    assert status.exit_code == 0
    assert f"cassandra  127.0.0.1:{ends.port}  up  pid {pids[0]}" in status.stdout

    # Another number of nodes is refused while data exists.
    with pytest.raises(UsageError, match="stack of one node already"):
        own_stack.up(3)

    # Down, and other commands no longer find it.
    down = command("down")
    assert down.exit_code == 0
    assert "its data stays" in down.stderr
    assert not any(pid and processes.rss_bytes(pid) for pid in pids)
    assert load_settings().origins["cluster.port"] == "default"
    status = command("status", "--json")
    assert status.exit_code == 4
    assert '"up": false' in status.stdout
    with pytest.raises(UsageError, match="not up"):
        own_stack.env()

    # Up again: its port is taken by now, its data still exists.
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", ends.port))
        thief.listen()
        moved = own_stack.up().endpoints
    assert moved.port != ends.port
    assert load_settings().settings.cluster.port == moved.port
    with connected(moved) as session:
        assert session.execute("SELECT v FROM kept.t WHERE id = 1").one().v == "before"
        session.execute("INSERT INTO kept.t (id, v) VALUES (2, 'written, not flushed')")

    # A killed node is restarted in place; Valkey keeps running.
    # (Cassandra marks the end of its commit log every 100 ms, if the disk is not busy; later writes
    # are lost with it.)
    time.sleep(2)
    (node,) = own_stack.nodes()
    assert node.pid is not None
    os.kill(node.pid, signal.SIGKILL)
    while node.runs():
        os.sched_yield()
    status = command("status")
    assert status.exit_code == 4
    assert f"127.0.0.1:{moved.port}  down" in status.stdout
    assert "`ringhaul local up` starts the rest" in status.stderr
    repaired = own_stack.up()
    assert repaired.nodes_started == 1
    assert not repaired.valkey_started
    assert repaired.endpoints == moved
    with connected(moved) as session:
        assert len(session.execute("SELECT * FROM kept.t").all()) == 2

    # Valkey stays up while a command uses it.
    with own_stack.valkey:
        with pytest.raises(UsageError, match="a running ringhaul command keeps its job"):
            own_stack.down(wipe=True)
        assert own_stack.status().up

    wiped = command("down", "--wipe")
    assert wiped.exit_code == 0
    assert own_stack.status().servers == []
    state_dir = Path(os.environ["RINGHAUL_STATE_DIR"])
    left = [path.name for path in state_dir.rglob("*") if path.is_file()]
    assert left == ["stack.lock"]
    assert "nothing to stop" in command("down").stderr
    assert "no local stack" in command("status").stderr


def test_a_node_that_cannot_start_reports_why_and_leaves_no_files(own_stack: Stack) -> None:
    with pytest.raises(LocalStackError) as caught:
        own_stack.up(heap="1M", any_port=True)
    message = str(caught.value)
    assert "Cassandra at 127.0.0.1 ended while starting" in message
    assert "console.log" in message
    assert "Too small" in message
    assert not any(server.pid for server in own_stack.status().servers)
    assert load_settings().origins["cluster.port"] == "default"


def test_a_port_with_another_protocol_is_not_cassandra() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert not answers_cql("127.0.0.1", port, timeout_s=0.2)
    assert not answers_cql("127.0.0.1", port)
