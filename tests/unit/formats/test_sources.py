import bz2
import gzip
import json
import lzma
import os
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from ringhaul.errors import SourceChanged, SourceCorrupt, SourceMissing, UsageError
from ringhaul.formats import sources
from ringhaul.formats.dialect import RFC_4180, CsvDialect
from ringhaul.formats.sources import (
    SourceFile,
    check_unchanged,
    estimate_records,
    find_sources,
    format_of,
    open_range,
    open_whole,
)
from ringhaul.formats.split import Stream


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.csv",
        "a.csv",
        "c.tsv.gz",
        "notes.md",
        ".hidden.csv",
        "sub/d.txt",
        ".git/e.csv",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x\n")
    return tmp_path


def names(found: list[SourceFile], folder: Path) -> list[str]:
    return [os.path.relpath(source.path, folder) for source in found]


def read_all(stream: Stream, size: int = 1000) -> bytes:
    return b"".join(iter(lambda: stream.read(size), b""))


def test_directories_globs_and_files_are_found_in_order_and_once(folder: Path) -> None:
    assert names(find_sources([str(folder)]), folder) == ["a.csv", "b.csv", "c.tsv.gz", "sub/d.txt"]
    assert names(find_sources([f"{folder}/*.csv", f"{folder}/b.csv"]), folder) == ["a.csv", "b.csv"]
    assert names(find_sources([f"{folder}/**/*.txt"]), folder) == ["sub/d.txt"]
    assert find_sources([f"{folder}/b.csv"]) == [SourceFile(f"{folder}/b.csv", 2, whole=False)]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(folder: Path) -> None:
    (folder / "x[1].csv").write_bytes(b"1\n")
    assert names(find_sources([f"{folder}/x[1].csv"]), folder) == ["x[1].csv"]


def test_what_can_only_be_read_whole(folder: Path) -> None:
    assert [source.whole for source in find_sources([str(folder)])] == [False, False, True, False]
    utf_16 = CsvDialect(encoding="utf-16")
    assert all(source.whole for source in find_sources([str(folder)], utf_16))


@pytest.mark.parametrize(
    ("arg", "error", "told"),
    [
        ("bb.csv", SourceMissing, "bb.csv: no such file; did you mean "),
        ("zzzzz", SourceMissing, "zzzzz: no such file"),
        ("none/x.csv", SourceMissing, "none/x.csv: no such file; there is no directory"),
        ("*.parquet", SourceMissing, "*.parquet: no file matches"),
        (
            "empty",
            UsageError,
            "empty: the directory holds no .csv, .tsv, .txt, .jsonl, .ndjson, .json, .parquet file",
        ),
        ("fifo", UsageError, "fifo: not a regular file"),
        ("dangling", SourceMissing, "dangling: No such file"),
    ],
)
def test_what_gives_nothing_to_read_is_told(
    folder: Path, arg: str, error: type[UsageError], told: str
) -> None:
    (folder / "empty").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "dangling").symlink_to("nowhere")
    with pytest.raises(error) as raised:
        find_sources([f"{folder}/{arg}"])
    assert told in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_range_is_read_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"0123456789")
    (source,) = find_sources([str(path)])
    with open_range(source, 3, 4) as stream:
        assert read_all(stream, 3) == b"3456"


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"0123456789")
    (source,) = find_sources([str(path)])
    with open_range(source, 0, 10) as stream:
        path.write_bytes(b"01234")
        with pytest.raises(SourceChanged, match="ended early"):
            read_all(stream)
    with pytest.raises(SourceChanged, match="is 5 bytes now and was 10") as raised:
        check_unchanged(source)
    assert raised.value.exit_code == 4
    with pytest.raises(SourceChanged), open_range(source, 0, 5):
        pass
    with pytest.raises(SourceChanged), open_whole(source, RFC_4180):
        pass
    path.unlink()
    with pytest.raises(SourceChanged, match="the file is gone"):
        check_unchanged(source)


TEXT = b"".join(b"%d,caf\xc3\xa9,%d\n" % (i, i * i) for i in range(20_000))
COMPRESSED = {
    ".gz": gzip.compress(TEXT),
    ".bz2": bz2.compress(TEXT),
    ".xz": lzma.compress(TEXT),
    ".zst": pa.compress(TEXT, codec="zstd", asbytes=True),
}


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
        # Arrow writes .zst without the checksum by which a flipped bit would be noticed.
        if (suffix, damage) != (".zst", "flipped")
    ],
)
def test_a_broken_archive_is_told_with_its_name(tmp_path: Path, suffix: str, damage: str) -> None:
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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "gbk", "cp500"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_other_encodings_are_read_as_utf_8(tmp_path: Path, encoding: str, size: int) -> None:
    text = "id,name\r\n1,é中\n" if encoding != "cp500" else "id,name\r\n1,é\n"
    if encoding == "gbk":
        text = text.replace("é", "")
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    dialect = CsvDialect(encoding=encoding)
    (source,) = find_sources([str(path)], dialect)
    with open_whole(source, dialect) as stream:
        assert read_all(stream, size) == text.encode()


def test_undecodable_text_becomes_invalid_utf_8_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\x00\x00\xd8b\x00\n\x00c")
    dialect = CsvDialect(encoding="utf-16-le")
    (source,) = find_sources([str(path)], dialect)
    with open_whole(source, dialect) as stream:
        assert read_all(stream, 3) == b"a\xffb\n\xff"


def test_records_are_estimated_rather_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(TEXT)
    packed.write_bytes(COMPRESSED[".gz"])
    assert estimate_records(find_sources([str(plain)])) == 20_001
    assert estimate_records(find_sources([str(packed)])) == 20_001
    assert estimate_records(find_sources([str(tmp_path)])) == 40_002
    monkeypatch.setattr(sources, "ESTIMATE_WHOLE_BYTES", 64 * 2**10)
    assert 20_000 <= estimate_records(find_sources([str(plain)])) < 60_000
    assert 20_000 <= estimate_records(find_sources([str(packed)])) < 80_000


def test_nothing_is_estimated_of_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert estimate_records(find_sources([str(tmp_path)])) <= 1
    (source,) = find_sources([str(tmp_path)])
    with open_range(source, 0, 0) as stream:
        assert stream.read(9) == b""


def test_the_format_of_a_file_is_told_by_its_suffix() -> None:
    names = ["a.csv", "a.TSV.gz", "a", "a.jsonl", "a.ndjson.zst", "a.JSON", "a.parquet", "json"]
    formats = ["csv", "csv", "csv", "jsonl", "jsonl", "jsonl", "parquet", "csv"]
    assert list(map(format_of, names)) == formats
    assert format_of("a.csv", "jsonl") == "jsonl"


def test_a_folder_that_was_unloaded_gives_the_parts_of_its_manifest(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "left over.csv"):
        (tmp_path / name).write_text("id\n")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"parts": [{"name": "b.csv"}, {"name": "a.csv"}]}))
    found = find_sources([str(tmp_path)])
    assert [Path(source.path).name for source in found] == ["b.csv", "a.csv"]

    manifest.write_text(json.dumps({"parts": [{"name": "c.csv"}]}))
    with pytest.raises(SourceMissing, match=r"lists c\.csv, which is not there"):
        find_sources([str(tmp_path)])
    manifest.write_text(json.dumps({"parts": []}))
    with pytest.raises(UsageError, match="nothing was unloaded"):
        find_sources([str(tmp_path)])
    manifest.write_text("[]")  # somebody else's
    assert len(find_sources([str(tmp_path)])) == 3


def test_a_parquet_file_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    with pytest.raises(UsageError, match="unpack it first"):
        find_sources([str(tmp_path / "a.parquet.gz")])
