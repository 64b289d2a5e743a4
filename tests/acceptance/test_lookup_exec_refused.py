"""lookup and exec commands that cannot work: refused with a message and an exit code.

`tests/unit/producer/refusals/test_lookup_exec_refused.py` has the cases that need no server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import create_table


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    """A table that the tests of this file leave empty."""
    columns = "id text PRIMARY KEY, n int, note text"
    return create_table(cassandra_session, module_keyspace, columns)


REFUSED: dict[str, tuple[list[Any], int, str]] = {
    "other marker": (["exec", "SELECT n FROM {t} WHERE id = ?", "--range", "key:0..1"], 2, "id"),
    "broken statement": (
        ["exec", "SELECT nn FROM {t} WHERE id = ?", "--range", "id:0..1"],
        4,
        "nn",
    ),
    "broken CQL": (
        ["exec", "SELECT n FORM {t} WHERE id = ?", "--range", "id:0..1"],
        4,
        "answered: line 1:9 ",
    ),
    "no such table": (["lookup", "-t", "{t}s", "--keys", "{keys}"], 4, "did you mean"),
    "no such key": (["lookup", "-t", "{t}", "--key", "n", "--keys", "{keys}"], 2, "needs id"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_command_that_cannot_work_is_refused(
    fleet: Ringhaul, table: str, tmp_path: Path, case: str
) -> None:
    (tmp_path / "keys.csv").write_text("id\nk1\n")
    (tmp_path / "other.csv").write_text("name\nk1\n")
    options, code, words = REFUSED[case]
    (tmp_path / "empty.csv").touch()
    names = {"t": table} | {name: tmp_path / f"{name}.csv" for name in ("keys", "other", "empty")}
    finished = fleet.run(*(str(option).format(**names) for option in options))
    assert finished.code == code, finished
    assert words in finished.err
    assert "Traceback" not in finished.err
