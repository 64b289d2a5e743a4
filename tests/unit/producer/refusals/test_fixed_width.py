"""Layouts of fixed-width records that cannot be used."""

from __future__ import annotations

import pytest

from tests.planning import PlannedRinghaul


@pytest.fixture
def table(keyspace: str) -> str:
    """Places with a name and a latitude."""
    return f"{keyspace}.places"


AT = "id:1-8,name:10-29,lat:30-37"

FIXED = ("--format", "fixed", "--columns-at", AT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "fixed"), "--format fixed needs the positions of the fields: --columns-at"),
        (("--columns-at", "id:1-8"), "--columns-at applies to fixed-width records: add --format"),
        (("--layout", "layout.csv"), "--layout applies to fixed-width records: add --format fixed"),
        ((*FIXED, "--layout", "layout.csv"), "--columns-at and --layout both say where"),
        ((*FIXED, "--columns", "a,b"), "--columns has no effect: the layout names the fields"),
        ((*FIXED, "--trim", "text"), "--trim has no effect: no file that is read is CSV"),
        (("--format", "fixed", "--columns-at", "id:8-1"), "--columns-at 'id' is at 8-1, which"),
        (("--format", "fixed", "--columns-at", "id:1-8,name:8-9"), "'name' at 8-9 overlap"),
        (("--format", "fixed", "--columns-at", " "), "--columns-at is empty"),
        (("--format", "fixed", "--layout", "none.csv"), "--layout none.csv: No such file"),
        (("--format", "fixed", "--layout", "layout.csv"), "--layout layout.csv: line 2: 'b' is"),
        (("--format", "fixed", "--columns-at", "id:1-8,nmae:9-20"), "nmae"),
    ],
)
def test_refused_layouts(
    fleet: PlannedRinghaul, table: str, options: tuple[str, ...], message: str
) -> None:
    (fleet.cwd / "a.txt").write_text("00000001|N 1                     0.25\n")
    (fleet.cwd / "layout.csv").write_text("id,1,8\nb,0,9\n")
    done = fleet.run("load", "a.txt", "-t", table, *options)
    assert done.code == 2 and message in done.err, done
