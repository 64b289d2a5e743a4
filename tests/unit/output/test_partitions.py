"""Rows in folders: what one attempt leaves, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.formats.write import OutputFormat
from ringhaul.output import partitions
from ringhaul.output.partitions import PartitionedParts
from ringhaul.output.parts import PartSet
from ringhaul.storage.access import Access, access, set_access
from ringhaul.storage.folders import open_folder

NAMES, TYPES = ["r", "k"], [CqlType("text"), CqlType("int")]


def parts_in(folder: Path) -> PartitionedParts:
    files = PartSet(
        str(folder), OutputFormat(), NAMES[1:], TYPES[1:], job="ul-1", unit=0, attempt="a"
    )
    return PartitionedParts(files, NAMES, TYPES, ["r"])


def rows(*regions: str) -> pa.RecordBatch:
    keys = pa.array(range(len(regions)), pa.int32())
    return pa.record_batch([pa.array(regions, pa.string()), keys], names=NAMES)


def names(folder: Path) -> set[str]:
    return set(open_folder(str(folder)).sizes(deep=True))


def test_few_files_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "OPEN_MAX", 2)
    parts = parts_in(tmp_path)
    parts.write(rows("a", "b", "c", "a"))
    open_now = [name for name in names(tmp_path) if name.endswith(".tmp")]
    assert len(open_now) == 2
    parts.roll()
    assert sum(part.rows for part in parts.parts) == 4
    assert names(tmp_path) == {part.name for part in parts.parts}


def test_an_attempt_that_does_not_count_leaves_nothing(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    parts.write(rows("a", "b"))
    parts.roll()
    parts.write(rows("a", "c"))
    parts.withdraw()
    assert names(tmp_path) == set()


def test_too_many_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "FOLDERS_MAX", 2)
    parts = parts_in(tmp_path)
    with pytest.raises(OutputUnusable, match="more than 2 folders of a single unit"):
        parts.write(rows("a", "b", "c"))
    parts.abandon()


def test_a_value_that_cannot_name_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputUnusable, match=r"--partition-by r: r=x+\.\.\. is longer than"):
        parts_in(tmp_path).write(rows("x" * 260))


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_the_same_folder_behind_a_url(tmp_path: Path, kind: str) -> None:
    before = access()
    set_access(Access(schemes=("file", "memory")))
    folder = open_folder(f"{kind}://{tmp_path}/out")
    file = folder.create("r=a%2Fb/x.csv")
    file.write(b"1\n")
    file.publish()
    assert folder.sizes(deep=True) == {"r=a%2Fb/x.csv": 2}
    assert folder.read("r=a%2Fb/x.csv") == b"1\n"
    set_access(before)
