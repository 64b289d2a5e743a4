"""A broker's address at which another server answers: every command says so, with exit code 4."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.web_server import running_web_server

COMMANDS = (
    *("status", "load r.csv -t k.t", "top --once", "schedule list"),
    *("worker", "beat", "flower"),
)


@pytest.fixture
def ringhaul(endpoints: Endpoints, tmp_path: Path) -> Ringhaul:
    (tmp_path / "r.csv").write_text("id\n1\n")
    steps = 'every = "1h"\nsteps = [["count", "-t", "k.t"]]\n'
    (tmp_path / "schedule.toml").write_text(f"[schedule.a]\n{steps}")
    env = cluster_env(endpoints, tmp_path / "state")
    return Ringhaul(env | {"RINGHAUL_SCHEDULE_FILE": str(tmp_path / "schedule.toml")}, tmp_path)


@pytest.fixture(params=["Cassandra", "a web server"])
def address(request: pytest.FixtureRequest, endpoints: Endpoints) -> Iterator[str]:
    if request.param == "Cassandra":
        yield f"127.0.0.1:{endpoints.port}"
    else:
        with running_web_server() as server:
            yield server.url.removeprefix("http://").rstrip("/")


def test_another_server_is_named(ringhaul: Ringhaul, address: str, endpoints: Endpoints) -> None:
    broker = {"RINGHAUL_BROKER_URL": f"redis://{address}/0"}
    message = f"What answers at {address} is not Redis: "
    for command in COMMANDS if address.endswith(str(endpoints.port)) else COMMANDS[:1]:
        finished = ringhaul.run(*command.split(), **broker)
        assert finished.code == 4, (command, finished)
        assert f"error: {message}" in finished.err, (command, finished)
        assert "Traceback" not in finished.err
    finished = ringhaul.run("doctor", "--json", **broker)
    assert finished.code == 4, finished
    assert message in finished.out
    assert json.loads(finished.out)
