"""The manifest lists the files of an unload, and is read back unchanged."""

import json
from pathlib import Path

import pytest

from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.output.manifest import (
    Manifest,
    check_parts,
    read_manifest,
    write_manifest,
)
from ringhaul.output.parts import PartInfo
from ringhaul.storage.hidden import MANIFEST


def part(name: str, after: int | None = None, **changes: object) -> PartInfo:
    fields = {"rows": 2, "bytes": 3, "checksum": "crc32:352441c2"} | changes
    return PartInfo.from_json({"name": name, "token_after": after, "token_to": None} | fields)


MANIFEST_1 = Manifest(
    job="ul-1",
    keyspace="shop",
    table="orders",
    statement="SELECT id, tags FROM shop.orders",
    columns=(("id", "uuid"), ("tags", "map<text, int>")),
    format=OutputFormat(null="\\N"),
    created="2026-01-02T03:04:05Z",
    parts=(part("part-a", -9), part("part-é", 4)),
)


def test_a_written_manifest_is_read_back(tmp_path: Path) -> None:
    assert read_manifest(str(tmp_path)) is None
    write_manifest(str(tmp_path), MANIFEST_1)
    write_manifest(str(tmp_path), MANIFEST_1)
    assert read_manifest(str(tmp_path)) == MANIFEST_1
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]
    fields = json.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))
    assert fields["version"] == 1
    assert fields["totals"] == {"parts": 2, "rows": 4, "bytes": 6}
    assert fields["columns"][1] == {"name": "tags", "type": "map<text, int>"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not one of ringhaul's"),
        ("[]", "not one of ringhaul's"),
        pytest.param("[" * 100_000, "not one of ringhaul's", id="nested too deep"),
        ('{"version": 1}', "not one of ringhaul's"),
        ('{"version": 2}', "has version 2"),
    ],
)
def test_an_invalid_manifest_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(UsageError, match=words):
        read_manifest(str(tmp_path))


def test_parts_are_checked(tmp_path: Path) -> None:
    for name, text in (("whole", "abc"), ("changed", "abd"), ("longer", "abcd")):
        (tmp_path / name).write_text(text)
    parts = tuple(map(part, ("whole", "changed", "longer", "missing")))
    names_only = check_parts(str(tmp_path), parts)
    assert names_only == ["longer: has 4 bytes, and had 3", "missing: is not there"]
    with_contents = check_parts(str(tmp_path), parts, contents=True)
    assert [line.split(":")[0] for line in with_contents] == ["changed", "longer", "missing"]
