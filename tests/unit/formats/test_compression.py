import bz2
import gzip
import lzma
import re
from itertools import product
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pyarrow as pa
import pytest

from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.dialect import RFC_4180
from ringhaul.formats.split import Stream
from ringhaul.sources.files import open_whole
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile

TEXT = b"".join(b"%d,caf\xc3\xa9,%d\n" % (i, i * i) for i in range(20_000))


def by_arrow(codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(TEXT)
    return bytes(sink.getvalue().to_pybytes())


COMPRESSED = {
    ".gz": gzip.compress(TEXT),
    ".bz2": bz2.compress(TEXT),
    ".xz": lzma.compress(TEXT),
    ".zst": pa.compress(TEXT, codec="zstd", asbytes=True),
    ".zstd": pa.compress(TEXT, codec="zstd", asbytes=True),
    ".lzma": lzma.compress(TEXT, format=lzma.FORMAT_ALONE),
    ".lz4": by_arrow("lz4"),
    ".br": by_arrow("brotli"),
}
#: These have no checksum here by which a flipped bit would be noticed.
UNCHECKED = (".zst", ".zstd", ".lzma", ".lz4", ".br")


def read_all(stream: Stream, size: int = 1000) -> bytes:
    return b"".join(iter(lambda: stream.read(size), b""))


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_compressed_files_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(COMPRESSED[suffix])
    (source,) = find_sources([str(path)])
    with open_whole(source, RFC_4180) as stream:
        assert read_all(stream) == TEXT
    # Archives may be appended to one another.
    path.write_bytes(COMPRESSED[suffix] * 2)
    (source,) = find_sources([str(path)])
    with open_whole(source, RFC_4180) as stream:
        assert read_all(stream) == TEXT * 2


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        (suffix, damage)
        for suffix, damage in product(COMPRESSED, ("cut", "flipped", "misnamed"))
        if damage != "flipped" or suffix not in UNCHECKED
    ],
)
def test_a_broken_archive_is_reported_with_its_name(
    tmp_path: Path, suffix: str, damage: str
) -> None:
    data = COMPRESSED[suffix]
    middle = len(data) // 2
    broken = {
        "cut": data[: len(data) - 9],
        "flipped": data[:middle]
        + bytes(b ^ 0xFF for b in data[middle : middle + 50])
        + data[middle + 50 :],
        "misnamed": TEXT,
    }
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(broken[damage])
    (source,) = find_sources([str(path)])
    with open_whole(source, RFC_4180) as stream, pytest.raises(SourceCorrupt) as raised:
        read_all(stream)
    assert f"a.csv{suffix}: cannot be decompressed" in str(raised.value)
    assert raised.value.exit_code == 4


def damaged(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_damage_after_the_first_of_several_streams_is_reported(tmp_path: Path, suffix: str) -> None:
    # Given two archives in one file; the second is damaged, or is not an archive
    one = COMPRESSED[suffix]
    ends = [damaged(one, place) for place in (0, 1, 20, len(one) // 2, len(one) - 3)]
    path = tmp_path / f"a.csv{suffix}"
    for end in [*ends, one[:2], one[: len(one) // 2], b"something else"]:
        path.write_bytes(one + end)
        (source,) = find_sources([str(path)])
        with open_whole(source, RFC_4180) as stream, pytest.raises(SourceCorrupt):
            read_all(stream)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_bytes_behind_the_end_of_any_stream_are_damage(tmp_path: Path, suffix: str) -> None:
    one = COMPRESSED[suffix]
    path = tmp_path / f"a.csv{suffix}"
    for end in (b"garbage that is no stream", b"g", one[: len(one) // 2], one[:-1]):
        path.write_bytes(one + end)
        (source,) = find_sources([str(path)])
        with open_whole(source, RFC_4180) as stream, pytest.raises(SourceCorrupt):
            read_all(stream)


def test_bytes_after_a_gzip_stream_are_reported_but_not_padding(tmp_path: Path) -> None:
    path = tmp_path / "a b.csv.gz"
    path.write_bytes(COMPRESSED[".gz"] + b"garbage")
    (source,) = find_sources([str(path)])
    with open_whole(source, RFC_4180) as stream, pytest.raises(SourceCorrupt) as error:
        read_all(stream)
    assert "the compressed text is complete, but bytes follow that are not gzip" in str(error.value)
    assert f"`gzip -dc '{path}'` extracts the text before them" in str(error.value)
    # A wrong checksum is damage: the message does not call the text complete.
    path.write_bytes(damaged(COMPRESSED[".gz"], len(COMPRESSED[".gz"]) - 6))
    (source,) = find_sources([str(path)])
    with open_whole(source, RFC_4180) as stream, pytest.raises(SourceCorrupt, match="damaged"):
        read_all(stream)
    path.write_bytes(COMPRESSED[".gz"] + bytes(1000) + COMPRESSED[".gz"] + bytes(3))
    (source,) = find_sources([str(path)])
    with open_whole(source, RFC_4180) as stream:
        assert read_all(stream) == TEXT * 2


def test_padding_of_xz_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.xz"
    path.write_bytes(COMPRESSED[".xz"] + bytes(4) + COMPRESSED[".xz"] + bytes(300_000))
    (source,) = find_sources([str(path)])
    with open_whole(source, RFC_4180) as stream:
        assert read_all(stream) == TEXT * 2


@pytest.mark.parametrize("suffix", [".snappy", ".sz", ".SZ"])
def test_a_name_of_snappy_is_refused_alone_and_in_a_folder(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(b"id\n1\n")
    (tmp_path / "b.csv").write_bytes(b"id\n1\n")
    refusal = re.escape(
        f"{path}: its name says that it is compressed by snappy, which is not supported: unpack "
        "it, also in a pipe (snzip -dc FILE | ringhaul ... -)"
    )
    for given in (path, tmp_path, tmp_path / "*"):
        with pytest.raises(UsageError, match=refusal):
            find_sources([str(given)])
    # A job of an older version may have such a file
    source = SourceFile(str(path), 5, whole=True, version="")
    with pytest.raises(UsageError, match=refusal), open_whole(source, RFC_4180):
        pass


@pytest.mark.parametrize("method", [ZIP_STORED, ZIP_DEFLATED])
def test_a_name_of_snappy_is_refused_in_an_archive(tmp_path: Path, method: int) -> None:
    with ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("b.csv.sz", b"id\n1\n" * 99)
    with pytest.raises(UsageError, match=r"a\.zip!b\.csv\.sz: its name says that it is compressed"):
        find_sources([str(tmp_path / "a.zip")])
