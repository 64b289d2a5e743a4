"""Fixtures for tests of code that reads the process's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kombu import pools

from config.settings import Settings, load_settings
from tasks.application import app

#: `settle(CLUSTER_PORT=1)`: the settings of a process with this environment, and the test's broker.
Settle = Callable[..., Settings]


@pytest.fixture
def settle(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settle]:
    """Set this process's settings and its Celery application until the test's end."""

    def settled(**values: object) -> Settings:
        for name, value in {"BROKER_URL": broker_url, **values}.items():
            monkeypatch.setenv(f"RINGHAUL_{name}", str(value))
        monkeypatch.setattr("tasks.settings._loaded", None)
        app.conf.broker_url = broker_url
        _close_connections()
        return load_settings().settings

    yield settled
    _close_connections()


def _close_connections() -> None:
    """Make Celery open new connections: it would publish to the broker of an earlier test."""
    pools.reset()
    app._pool = None
    app.amqp._producer_pool = None
