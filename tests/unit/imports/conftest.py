"""Fixtures of tests with a Sidecar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringhaul.imports import sidecar as sidecars
from tests import sidecar as served
from tests.sidecar import running_sidecar
from tests.unit.imports.rig import NODES, Rig


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(sidecars, "_LOST_PAUSE_S", 0.05)
    monkeypatch.setattr(sidecars, "_BUSY_PAUSE_S", 0.05)
    monkeypatch.setattr("ringhaul.streaming.delivery.PAUSES_S", (0.01, 0.01))

    def importer(
        host: str, keyspace: str, table: str, folder: Path, options: dict[str, str]
    ) -> str:
        """Move files as a node does: all of an SSTable, or nothing."""
        made.options = options
        if not made.refusal and list(folder.glob("*-Data.db")):
            place = made.taken / host / keyspace / table
            place.mkdir(parents=True, exist_ok=True)
            folder.rename(place / f"{len(list(place.iterdir())):03}")
        return made.refusal

    server = served.Sidecar(tmp_path / "staging", importer, {node.address for node in NODES})
    made = Rig(server, tmp_path / "taken")
    with running_sidecar(server):
        yield made
