"""Output folders that are full or unusable."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
from cassandra.cluster import Session

from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.formats.write import OutputFormat
from tests.integration.scan.rows import ROWS, Rows, by_key
from tests.integration.scan.units import (
    MANY_GROUPS,
    NEVER,
    WIDE_RANGE,
    make_unit,
    names,
    parts_of,
    read_parts,
    unload,
)
from tests.limits import files_up_to


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_full_disk_fails_the_unit_and_leaves_no_file(
    cassandra_session: Session,
    rows: Rows,
    tmp_path: Path,
    kind: str,
) -> None:
    fmt = OutputFormat(kind=kind, compression="none")
    unit = unload(cassandra_session, rows, tmp_path / "out", fmt=fmt)
    message = r"out: a part is larger than a file may be there"
    with pytest.raises(OutputUnusable, match=message), files_up_to(200_000):
        unit.attempt(checkpoint_s=NEVER)
    assert names(tmp_path / "out") == []


def test_a_disk_that_becomes_full_keeps_the_checkpointed_parts(
    cassandra_session: Session,
    rows: Rows,
    tmp_path: Path,
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)

    def fill() -> None:
        if unit.counted[0] > 40_000:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))

    # When the disk becomes full after some checkpoints
    message = "larger than a file may be"
    with pytest.raises(OutputUnusable, match=message), files_up_to(resource.RLIM_INFINITY):
        unit.attempt(on_checkpoint=fill)
    # Then the folder holds the parts that the cursor names
    assert names(tmp_path) == sorted(part["name"] for part in json.loads(unit.saved))
    # And with room again the next attempt continues there
    outcome = unit.attempt()
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == rows.expected
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)


def test_a_full_disk_and_a_large_partial(
    cassandra_session: Session,
    rows: Rows,
    tmp_path: Path,
) -> None:
    unit = make_unit(
        cassandra_session,
        rows,
        "query",
        MANY_GROUPS,
        [WIDE_RANGE],
        partial_bytes_max=2000,
        spill=str(tmp_path),
    )
    message = r"cannot be kept here: File too large; make room"
    with pytest.raises(OutputUnusable, match=message), files_up_to(5000):
        unit.attempt(checkpoint_s=NEVER)
    assert names(tmp_path) == []


def test_a_folder_that_is_a_file(cassandra_session: Session, rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    unit = unload(cassandra_session, rows, tmp_path / "out")
    with pytest.raises((OutputUnusable, UsageError), match="is not a folder that can be written"):
        unit.attempt()
    assert (tmp_path / "out").read_text() == "precious"
