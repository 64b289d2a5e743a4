"""A session opened in the background: handed over, refused, and closed without waiting."""

from __future__ import annotations

import os
import socket
import time

import pytest

from config.settings import Settings, load_settings
from producer.services.cluster import Opening
from ringhaul.cluster.connect import ClusterConfig
from ringhaul.errors import ClusterUnavailable


@pytest.fixture(autouse=True)
def no_settings_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RINGHAUL_")]:
        monkeypatch.delenv(name)


def settings(config: ClusterConfig, port: int) -> Settings:
    flags = {"cluster.contact_points": config.contact_points, "cluster.port": port}
    return load_settings(flags).settings


def test_the_opening_closes_its_session(config: ClusterConfig) -> None:
    with Opening(settings(config, config.port)) as opening:
        session = opening.session()
        assert session.execute("SELECT cluster_name FROM system.local").one() is not None
        assert opening.session() is session
    deadline = time.monotonic() + 20
    while not session.is_shutdown and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session.is_shutdown


def test_an_unreachable_cluster_raises_when_the_session_is_requested(
    config: ClusterConfig,
) -> None:
    with Opening(settings(config, 1)) as opening:
        for _ in range(2):
            with pytest.raises(ClusterUnavailable, match=r"no node answers at 127\.0\.0\.1:1"):
                opening.session()


def test_leaving_does_not_wait_for_an_unused_connection(config: ClusterConfig) -> None:
    # Given a server that accepts connections and does not answer for the length of the test
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        given = settings(config, silent.getsockname()[1])
        began = time.monotonic()
        with Opening(given):
            pass
        assert time.monotonic() - began < given.cluster.connect_timeout_s - 1
