"""Verifications that are refused before a job exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning import PlannedRinghaul


@pytest.fixture
def module_table(keyspace: str) -> str:
    """A table with a key and a text."""
    return f"{keyspace}.texts"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ttl", "5"], "No such option '--ttl'"),
        (["--skip-columns", "id"], "id"),
        (["--consistency", "THREE"], "THREE"),
        (["--max-errors", "x"], "max_errors"),
    ],
)
def test_a_verification_that_cannot_work_is_refused(
    fleet: PlannedRinghaul, module_table: str, tmp_path: Path, options: list[str], message: str
) -> None:
    (tmp_path / "in.csv").write_text("id,v\n1,v1\n")
    refused = fleet.run("verify", tmp_path / "in.csv", "-t", module_table, *options)
    assert (refused.code, refused.out) == (2, ""), refused
    assert message in refused.err
    assert "Traceback" not in refused.err
