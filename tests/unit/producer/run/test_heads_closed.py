"""Once a plan is made, its command holds no file of it open: a job may run for hours."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.planning
from producer.plan.heads import Heads
from tests.planning import Accepted, PlannedRinghaul
from tests.unit.producer.refusals.conftest import KEYSPACE


@pytest.mark.parametrize(
    "command",
    [
        ("load", "orders.csv", "-t", f"{KEYSPACE}.orders"),
        ("lookup", "-t", f"{KEYSPACE}.orders", "--keys", "orders.csv", "-o", "out"),
    ],
)
def test_the_heads_are_closed_before_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "orders.csv").write_text("id\n1\n")
    closed: list[int] = []
    leave = Heads.__exit__

    def noted_leave(heads: Heads, *error: object) -> None:
        closed.append(len(heads.files))
        leave(heads, None, None, None)

    def accept(*_: object) -> int:
        assert closed == [1]
        raise Accepted

    monkeypatch.setattr(Heads, "__exit__", noted_leave)
    monkeypatch.setattr(tests.planning, "_accept", accept)
    with pytest.raises(Accepted):
        PlannedRinghaul(tmp_path).run(*command)
