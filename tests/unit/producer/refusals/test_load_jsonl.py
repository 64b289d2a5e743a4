"""Files of JSON Lines that cannot be loaded."""

from __future__ import annotations

import pytest

from tests.planning import PlannedRinghaul


@pytest.fixture
def table(keyspace: str) -> str:
    """A table with a key and a text."""
    return f"{keyspace}.texts"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", (), "x.jsonl is empty: it has no records"),
        ('{"a": 1}', (), "the first record names no column of"),
        ('{"id": 1}', ("--columns", "id"), "--columns has no effect: the file has a name"),
        ('{"id": 1}', ("--no-header",), "--no-header has no effect"),
        ('{"id": 1}', ("--mapping", "x=v"), "no field for primary key column 'id'"),
    ],
)
def test_an_unusable_file_is_refused(
    fleet: PlannedRinghaul,
    table: str,
    text: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    (fleet.cwd / "x.jsonl").write_text(text)

    done = fleet.run("load", "x.jsonl", "-t", table, *options)

    assert done.code == 2
    assert message in done.err.replace("\n", " "), done.err
