"""A local file is read as one version: bytes of another one never reach a reader."""

from __future__ import annotations

import gzip
import io
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.errors import SourceChanged, SourceMissing
from ringhaul.formats.parquet_read import RowBlock
from ringhaul.formats.split import Position
from ringhaul.records.field_readers import AnyBlock
from ringhaul.records.reading import read_records
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.files import check_unchanged, open_parquet, open_range, open_stored
from ringhaul.sources.find import find_sources
from ringhaul.sources.local_file import LocalFile
from ringhaul.sources.source import SourceFile
from tests.heads import estimate
from tests.loads import load_job, load_source, table_schema

ROWS = 30_000


def text(letter: str) -> bytes:
    return b"id,v\n" + b"".join(b"%05d,%s%05d\n" % (n, letter.encode(), n) for n in range(ROWS))


def table(letter: str) -> pa.Table:
    return pa.table({"id": range(ROWS), "v": [f"{letter}{n:05}" for n in range(ROWS)]})


def stored(folder: Path, kind: str, letter: str) -> bytes:
    """A file of one size, whatever its letter."""
    if kind == "csv":
        return text(letter)
    if kind == "csv.gz":
        return gzip.compress(text(letter), 0, mtime=0)
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(zipfile.ZipInfo("a.csv"), text(letter))
    else:
        pq.write_table(
            table(letter),
            out,
            row_group_size=ROWS,
            data_page_size=4096,
            compression="none",
            use_dictionary=False,
        )
    return out.getvalue()


def blocks_of(source: SourceFile, kind: str) -> Iterator[AnyBlock]:
    """The blocks of a source, as units and commands read them."""
    file_format = "parquet" if kind == "parquet" else "csv"
    planned = replace(load_source(["id", "v"]), file=source, format=file_format)
    job = load_job(table_schema({"id": "int", "v": "text"}, ["id"]), planned)
    return read_records(planned, job, Position(0, 0, 1), TO_THE_END, 1 << 14)


def values_of(block: AnyBlock) -> bytes:
    if isinstance(block, RowBlock):
        return b"," + b",".join(v.encode() for v in block.batch.column("v").to_pylist())
    return bytes(block.data)


def replaced(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    os.replace(other, path)


def in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)


def time_put_back(path: Path, data: bytes) -> None:
    before = path.stat()
    in_place(path, data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def through_a_link(path: Path, data: bytes) -> None:
    other = path.with_name("linked")
    other.write_bytes(data)
    path.unlink()
    path.symlink_to(other)


CHANGES = [replaced, in_place, time_put_back, through_a_link]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "zip", "parquet"])
def test_a_change_between_two_blocks_is_noticed_before_the_next(
    tmp_path: Path, kind: str, change: Callable[[Path, bytes], None]
) -> None:
    path = tmp_path / f"a.{kind}"
    old, new = (stored(tmp_path, kind, letter) for letter in "ab")
    assert len(old) == len(new) and old != new
    path.write_bytes(old)
    (source,) = find_sources([str(path)])
    blocks = blocks_of(source, kind)
    next(blocks)
    change(path, new)
    # Bytes that were read before the change may still come
    with pytest.raises(SourceChanged, match=rf"{path}: the file (was|may have been)"):
        for block in blocks:
            assert b",b" not in values_of(block)
    # Nor can it be opened, counted or resumed
    for read in (check_unchanged, lambda source: open_stored(source).close()):
        with pytest.raises(SourceChanged):
            read(source)
    if kind != "parquet":
        with pytest.raises(SourceChanged):
            estimate(source)


def test_a_change_before_a_rename_back_is_noticed(tmp_path: Path) -> None:
    # Given a reader that opened the file while another one had its name
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_bytes(b"id\n1\n")
    other.write_bytes(b"id\n2\n")
    (source,) = find_sources([str(path)])
    os.rename(path, tmp_path / "kept")
    os.rename(other, path)
    with pytest.raises(SourceChanged, match="was replaced"):
        LocalFile(source)


def test_a_file_of_a_moment_ago_is_settled_before_it_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id\n1\n")
    waited = []

    def rewritten(seconds: float) -> None:
        waited.append(seconds)
        path.write_bytes(b"id\n2\n")
        os.utime(path, ns=(1, 1))

    monkeypatch.setattr(time, "sleep", rewritten)
    with pytest.raises(SourceChanged, match="was written to"):
        find_sources([str(path)])
    assert 0 < waited[0] <= 0.02
    # An old file is not waited for
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 1_000_000_000)
    assert find_sources([str(path)])
    assert len(waited) == 1


def test_damage_is_called_a_change_if_the_file_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(stored(tmp_path, "parquet", "a"))
    (source,) = find_sources([str(path)])
    blocks = blocks_of(source, "parquet")
    next(blocks)
    in_place(path, bytes(path.stat().st_size))
    with pytest.raises(SourceChanged, match="was written to"):
        list(blocks)


def test_a_footer_is_of_the_same_version(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(stored(tmp_path, "parquet", "a"))
    (source,) = find_sources([str(path)])
    with pytest.raises(SourceChanged, match="was replaced"), open_parquet(source) as file:
        assert file.metadata.num_rows == ROWS
        replaced(path, stored(tmp_path, "parquet", "b"))


@pytest.mark.parametrize("what", ["folder", "pipe", "nothing"])
def test_what_took_its_place_is_no_file(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id\n1\n")
    (source,) = find_sources([str(path)])
    path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    with pytest.raises(SourceChanged, match=r"the file is gone|was a file when the job started"):
        check_unchanged(source)


def test_an_error_of_a_replaced_file_is_called_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id\n1\n")
    (source,) = find_sources([str(path)])

    with LocalFile(source) as file:
        # A descriptor that cannot be read, as one of a network mount that lost the file
        unreadable = os.open(os.devnull, os.O_WRONLY)
        os.dup2(unreadable, file.fileno())
        os.close(unreadable)
        with pytest.raises(OSError, match="Bad file descriptor"):
            file.read(1)
        replaced(path, b"id\n2\n")
        with pytest.raises(SourceChanged, match="was replaced"):
            file.read(1)


def test_jobs_of_older_versions_have_only_a_size(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id\n1\n")
    source = SourceFile(str(path), 5, False)
    path.write_bytes(b"id\n2\n")
    check_unchanged(source)
    # While it is open, its version counts all the same
    with pytest.raises(SourceChanged, match="was replaced"), open_range(source, 0, 5) as stream:
        assert stream.read(2) == b"id"
        replaced(path, b"id\n3\n")
        stream.read(3)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    loop = tmp_path / "a.csv"
    loop.symlink_to(loop)
    with pytest.raises(SourceMissing, match="symbolic links"):
        check_unchanged(SourceFile(str(loop), 5, False))
