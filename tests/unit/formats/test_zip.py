"""Members of zip archives are read as files, and archives that cannot be read are refused."""

from __future__ import annotations

import gzip
import io
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ringhaul.errors import RinghaulError, SourceChanged, SourceCorrupt, SourceMissing, UsageError
from ringhaul.formats import zip_directory
from ringhaul.formats.dialect import RFC_4180
from ringhaul.records.job import LoadSource
from ringhaul.sources.files import open_range, open_whole
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import Access, access, set_access
from ringhaul.storage.roots import OutsideRoots
from tests.web_server import running_web_server

TEXT = b"".join(b"%d,caf\xc3\xa9,%d\n" % (i, i * i) for i in range(20_000))
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


def pack(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def content(source: SourceFile) -> bytes:
    data = b""
    with open_whole(source, RFC_4180) as stream:
        while more := stream.read(100_000):
            data += more
    return data


def read_all(source: str) -> dict[str, bytes]:
    return {found.path.partition("!")[2]: content(found) for found in find_sources([source])}


@pytest.mark.parametrize("method", METHODS)
def test_members_have_the_bytes_that_were_packed(tmp_path: Path, method: int) -> None:
    members = {"b.csv": TEXT, "a/c.csv": b"", "d.csv.gz": gzip.compress(TEXT)}
    aside = {"a/.hidden": b"x", "__MACOSX/b.csv": b"x", "a/": b""}
    path = pack(tmp_path / "all.ZIP", members | aside, method)
    expected = {"a/c.csv": b"", "b.csv": TEXT, "d.csv.gz": TEXT}
    assert read_all(str(path)) == expected
    assert list(read_all(str(path))) == sorted(expected)
    assert read_all(f"{path}!*.csv") == {"a/c.csv": b"", "b.csv": TEXT}
    assert read_all(f"{path}!b.csv") == {"b.csv": TEXT}
    assert read_all(f"{path}!a/.hidden") == {"a/.hidden": b"x"}
    # Several archives by a glob, and a member that is named twice
    pack(tmp_path / "more.zip", {"b.csv": b"1\n"})
    found = find_sources([f"{tmp_path}/*.zip!b.*", f"{tmp_path}/more.zip"])
    assert [source.path for source in found] == [f"{tmp_path}/more.zip!b.csv"]


def test_a_stored_member_is_read_at_any_position(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"x": b"no", "a.csv": TEXT, "y": b"no"}, zipfile.ZIP_STORED)
    (source,) = find_sources([f"{path}!a.csv"])
    assert not source.whole and source.size_bytes == len(TEXT)
    for offset, length in ((0, 5), (77, 1000), (len(TEXT) - 3, 3), (5, len(TEXT) - 5)):
        data = b""
        with open_range(source, offset, length) as stream:
            while more := stream.read(400):
                data += more
        assert data == TEXT[offset : offset + length]


def test_a_packed_member_is_one_stream(tmp_path: Path) -> None:
    (source,) = find_sources([str(pack(tmp_path / "a.zip", {"a.csv": TEXT}))])
    assert source.whole and source.size_bytes == len(TEXT)


def test_a_spec_keeps_where_a_member_is(tmp_path: Path) -> None:
    (file,) = find_sources([str(pack(tmp_path / "a.zip", {"a.csv": TEXT}))])
    source = LoadSource(file=file, fields=("a",), mapping=(("a", "a"),))
    again = LoadSource.from_json(source.to_json())
    assert again == source and content(again.file) == TEXT
    # And one that was stored before there were archives is read
    old = {name: value for name, value in source.to_json().items() if name != "archive"}
    assert LoadSource.from_json(old).file.archive is None


def zip64(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.csv", "w", force_zip64=True) as member,
    ):
        member.write(TEXT)


def streamed(path: Path) -> None:
    """As a program writes it that cannot go back: sizes follow the data."""

    class Forward(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:  # type: ignore[override]
            self.data += bytes(data)
            return len(data)

    out = Forward()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", TEXT)
    path.write_bytes(out.data)


def self_extracting(path: Path) -> None:
    pack(path, {"a.csv": TEXT})
    path.write_bytes(b"#!/bin/sh\nexit 0\n" + path.read_bytes())


@pytest.mark.parametrize("write", [zip64, streamed, self_extracting])
def test_archives_of_other_programs(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "a.zip")
    assert read_all(str(tmp_path / "a.zip")) == {"a.csv": TEXT}


def test_a_file_may_be_named_like_a_member(tmp_path: Path) -> None:
    (tmp_path / "a.zip!b.csv").write_bytes(b"1\n")
    (found,) = find_sources([str(tmp_path / "a.zip!b.csv")])
    assert found.archive is None and content(found) == b"1\n"


def patched(path: Path, name: bytes, offset: int, value: bytes) -> Path:
    """Change a field of a member's entry in the directory; `offset`: from the entry's start."""
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2")
    while data[at + 46 : at + 46 + len(name)] != name:
        at = data.index(b"PK\1\2", at + 1)
    data[at + offset : at + offset + len(value)] = value
    path.write_bytes(data)
    return path


def test_what_is_not_there(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"geo.txt": b"1\n", "wide.csv": b"1\n"})
    with pytest.raises(
        SourceMissing, match=r"has no member 'geo.tx'; did you mean .*a.zip!geo.txt"
    ):
        find_sources([f"{path}!geo.tx"])
    with pytest.raises(SourceMissing, match=r"no member matches '\*.dat' \(it has 'geo.txt', 'wi"):
        find_sources([f"{path}!*.dat"])
    with pytest.raises(SourceMissing, match="the archive holds no file"):
        find_sources([str(pack(tmp_path / "b.zip", {"folder/": b""}))])
    with pytest.raises(SourceMissing, match=r"c.zip: no such file"):
        find_sources([f"{tmp_path}/c.zip!x"])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../../etc/passwd", "leads out of the archive"),
        ("a/../../x.csv", "leads out of the archive"),
        ("/etc/passwd", "is absolute"),
        ("C:/x.csv", "is absolute"),
        ("a\\..\\x.csv", "or control characters"),
        ("s3://bucket/x.csv", "or control characters"),
        ("a\nb.csv", "or control characters"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, why: str) -> None:
    path = pack(tmp_path / "a.zip", {"good.csv": b"1\n", name: b"2\n"})
    with pytest.raises(UsageError, match=why) as caught:
        find_sources([str(path)])
    assert repr(name) in str(caught.value) and "a.zip!*.csv" in str(caught.value)
    # The others can be named
    assert read_all(f"{path}!good.csv") == {"good.csv": b"1\n"}


def test_what_is_not_supported_is_refused(tmp_path: Path) -> None:
    path = patched(pack(tmp_path / "a.zip", {"a.csv": TEXT}), b"a.csv", 8, b"\1\0")
    with pytest.raises(UsageError, match=r"a.zip!a.csv: is encrypted, which is not supported"):
        find_sources([str(path)])
    pack(path, {"a.csv": TEXT}, zipfile.ZIP_LZMA)
    with pytest.raises(UsageError, match=r"is packed by lzma \(14\), which is not supported"):
        find_sources([str(path)])
    with pytest.raises(UsageError, match="Parquet is read at many places"):
        find_sources([str(pack(path, {"a.parquet": b"PAR1"}))])
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a.csv", b"1\n")
        archive.writestr("a.csv", b"2\n")
    with pytest.raises(UsageError, match=r"2 of its members are named 'a.csv'"):
        find_sources([str(path)])


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    # A size that nothing unpacks to
    patched(pack(path, {"a.csv": TEXT}), b"a.csv", 24, struct.pack("<I", 2**31))
    with pytest.raises(SourceCorrupt, match=r"would unpack to 2,147,483,648, as in a zip bomb"):
        find_sources([str(path)])
    # Members that share bytes
    patched(pack(path, {"a.csv": TEXT, "b.csv": TEXT}), b"b.csv", 42, struct.pack("<I", 0))
    with pytest.raises(SourceCorrupt, match=r"'a.csv' and 'b.csv' share bytes, as in a zip bomb"):
        find_sources([str(path)])
    # More than the directory says
    patched(pack(path, {"a.csv": TEXT}), b"a.csv", 24, struct.pack("<I", 1000))
    (source,) = find_sources([str(path)])
    with pytest.raises(SourceCorrupt, match=r"more than the 1,000 bytes that the archive's dir"):
        content(source)
    # A directory that takes too much memory
    monkeypatch.setattr(zip_directory, "DIRECTORY_BYTES_MAX", 50)
    with pytest.raises(UsageError, match=r"a.zip: its directory has 51 bytes, and at most 50"):
        find_sources([str(pack(path, {"a.csv": TEXT}))])


@pytest.mark.parametrize("method", METHODS)
def test_damage_is_found(tmp_path: Path, method: int) -> None:
    path = pack(tmp_path / "a.zip", {"a.csv": TEXT}, method)
    data = path.read_bytes()

    def content_of(damaged: bytes) -> bytes:
        path.write_bytes(damaged)
        (source,) = find_sources([str(path)])
        return content(source)

    # Content that is not what was packed
    for at in (60, len(data) // 2):
        with pytest.raises(SourceCorrupt, match=r"a.zip!a.csv: cannot be read from the archive"):
            content_of(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    # A header that is gone, and another method
    with pytest.raises(SourceCorrupt, match="directory leads to something else"):
        content_of(b"xx" + data[2:])
    with pytest.raises(SourceCorrupt, match="is packed by method 268"):
        content_of(data[:8] + b"\x0c\1" + data[10:])


@pytest.mark.parametrize("change", ["size", "content"])
def test_an_archive_that_changed_is_noticed(tmp_path: Path, change: str) -> None:
    path = pack(tmp_path / "a.zip", {"a.csv": TEXT})
    data = path.read_bytes()
    (source,) = find_sources([str(path)])
    path.write_bytes(data[:-1] if change == "size" else data)
    with pytest.raises(SourceChanged, match=r"a.zip: the file (is|was written to)"):
        content(source)


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"a.csv": TEXT})
    data = path.read_bytes()
    for size in (0, 3, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(SourceCorrupt, match=r"a.zip: cannot be read as a zip archive.* cut"):
            find_sources([str(path)])


def test_any_damage_is_an_error_or_harmless(tmp_path: Path) -> None:
    """Each byte of the directory and many others, changed: a message, or the same content."""
    small = {"a.csv": TEXT[:3000], "b.csv": TEXT[:50]}
    path = pack(tmp_path / "a.zip", small)
    data = path.read_bytes()
    draw = random.Random(28)
    begin = data.index(b"PK\1\2")
    for at in [*range(begin, len(data)), *draw.sample(range(begin), 200)]:
        changed = bytearray(data)
        changed[at] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        try:
            found = read_all(str(path))
        except RinghaulError as error:
            assert "a.zip" in str(error)
        else:
            assert set(found.values()) <= {*small.values()}, at


def test_a_large_member_is_read_in_little_memory(tmp_path: Path) -> None:
    """126 MB of fixed-width records, as a worker reads them, in a separate process."""
    path, line = tmp_path / "big.zip", f"{'x' * 20}{'':478}\n".encode()
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("big.txt", "w", force_zip64=True) as member,
    ):
        for _ in range(120):
            member.write(line * 2100)
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(path)], capture_output=True, text=True, check=True
    )
    before, after, records = map(int, done.stdout.split())
    assert records == 120 * 2100
    assert after - before < 60_000  # KiB


READ_ALL = """
import resource, sys
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_layout import FixedField
from ringhaul.formats.fixed_read import fixed_dialect, read_fixed
from ringhaul.formats.split import START, read_blocks
from ringhaul.sources.files import open_whole
from ringhaul.sources.find import find_sources

dialect, records, before = fixed_dialect(CsvDialect()), 0, 0
(source,) = find_sources([sys.argv[1]], file_format="fixed")
with open_whole(source, dialect) as stream:
    for block in read_blocks(stream, dialect, block_bytes=2**21, start=START):
        records += len(read_fixed(block, dialect, [FixedField("a", 1, 400)], ["a"]).records)
        before = before or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, records)
"""


def test_members_behind_a_url(tmp_path: Path) -> None:
    data = pack(tmp_path / "a.zip", {"a.csv": TEXT, "b.csv": TEXT}).read_bytes()
    before = access()
    set_access(Access(private_addresses=True))
    try:
        with running_web_server() as server:
            server.files["a.zip"] = data
            url = f"{server.url}/a.zip"
            assert read_all(url) == {"a.csv": TEXT, "b.csv": TEXT}
            (source,) = find_sources([f"{url}!b.csv"])
            assert source.path == f"{url}!b.csv" and content(source) == TEXT
            server.etag = '"2"'
            with pytest.raises(SourceChanged, match="the file was replaced"):
                content(source)
            server.ranges = False
            with pytest.raises(UsageError, match="does not serve parts of a file, which zip needs"):
                find_sources([url])
    finally:
        set_access(before)


def test_an_archive_outside_of_the_allowed_roots_is_not_opened(tmp_path: Path) -> None:
    (source,) = find_sources([str(pack(tmp_path / "a.zip", {"a.csv": TEXT}))])
    before = access()
    set_access(Access(allowed_roots=(str(tmp_path / "in"),)))
    try:
        with pytest.raises(OutsideRoots, match=r"a.zip: on host"):
            content(source)
    finally:
        set_access(before)
