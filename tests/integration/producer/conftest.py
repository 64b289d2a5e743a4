"""A ledger, and the fixtures of the beats' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tests.integration.producer.rig import Rig


@pytest.fixture
def ledger(broker_url: str) -> Iterator[Ledger]:
    """An empty ledger."""
    client = connect(broker_url)
    yield Ledger(client)
    client.close()


@pytest.fixture
def rig(tmp_path: Path, broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    # Settings that depend on the current folder, which is not the steps' folder
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ringhaul.toml").write_text('[cluster]\ncontact_points = ["localhost"]\nport = 1\n')
    monkeypatch.setenv("RINGHAUL_BROKER_URL", broker_url)
    monkeypatch.setenv("RINGHAUL_STATE_DIR", "state")
    monkeypatch.setenv("RINGHAUL_SCHEDULE_FILE", "config/schedule.toml")
    found = Rig(tmp_path, broker_url)
    yield found
    found.client.close()
