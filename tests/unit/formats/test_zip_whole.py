"""Archives whose directory lists more or less than is there."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from pathlib import Path

import pytest

from ringhaul.errors import SourceCorrupt
from ringhaul.sources.find import find_sources

TEXT = b"".join(b"%d,x%d\n" % (n, n) for n in range(2000))
NAMES = ["0.csv", "1.csv", "2.csv"]
_END = struct.Struct("<4s4H2LH")
#: Fields of the end record.
ON_DISK, TOTAL, SIZE, OFFSET = 3, 4, 5, 6


def packed(*, method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in NAMES:
            archive.writestr(name, TEXT)
        archive.comment = comment
    return buffer.getvalue()


def with_end(data: bytes, **changes: int) -> bytes:
    """Return an archive with other numbers in its end record."""
    at = data.rindex(b"PK\5\6")
    fields = list(_END.unpack_from(data, at))
    places = {"count": (ON_DISK, TOTAL), "size": (SIZE,), "offset": (OFFSET,)}
    for name, value in changes.items():
        for place in places[name]:
            fields[place] = value
    return data[:at] + _END.pack(*fields) + data[at + _END.size :]


def places(data: bytes, magic: bytes) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(magic), data)]


def damaged(method: int) -> dict[str, tuple[bytes, str]]:
    data = packed(method=method)
    members, entries = places(data, b"PK\3\4"), places(data, b"PK\1\2")
    end = data.rindex(b"PK\5\6")
    shorter = data[: entries[2]] + data[end:]
    size = entries[2] - entries[0]
    without_last = data[: members[2]] + data[entries[0] :]
    half = members[2] + 500
    cut_last = data[:half] + data[entries[0] :]
    return {
        "counts one more": (with_end(data, count=4), "lists 3 members, and says that there are 4"),
        "counts one less": (with_end(data, count=2), "lists 3 members, and says that there are 2"),
        "a cut directory": (with_end(shorter, size=size), "lists 2 members, and says that there"),
        "an unlisted member": (
            with_end(shorter, size=size, count=2),
            f"a member at byte {members[2]:,} is not in the archive's directory",
        ),
        "a member that is gone": (
            with_end(without_last, offset=members[2]),
            r"'2\.csv' is cut short: the directory says",
        ),
        "half a member": (with_end(cut_last, offset=half), r"'2\.csv' is cut short"),
        "two archives": (data + packed(), "a member at byte 0 is not in the archive's directory"),
        "one and a half": (data + packed()[:5000], "5,000 bytes follow the end of the archive"),
        "bytes behind": (data + b"<html>", "6 bytes follow the end of the archive"),
    }


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("kind", damaged(zipfile.ZIP_STORED))
def test_an_archive_that_lists_more_or_less_than_it_has_is_damaged(
    tmp_path: Path, kind: str, method: int
) -> None:
    data, why = damaged(method)[kind]
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    for source in (str(path), f"{path}!0.csv"):
        with pytest.raises(SourceCorrupt, match=f"^{path}: .*{why}") as raised:
            find_sources([source])
        assert raised.value.exit_code == 4


def test_complete_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # stored within: it has members of its own
        archive.writestr("inner.csv", packed())
        info = zipfile.ZipInfo("extra.csv")
        info.extra = struct.pack("<HH", 0xCAFE, 500) + bytes(500)
        archive.writestr(info, TEXT)
    for data in (
        packed(comment=b"a comment"),
        packed() + bytes(100),
        b"#!/bin/sh\n" + packed(),
        buffer.getvalue(),
    ):
        path.write_bytes(data)
        assert len(find_sources([str(path)])) in (2, 3)
