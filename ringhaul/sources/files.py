"""Open a source file: check that it is unchanged, and read its bytes, as stored or as text.

A plain file is read by ranges; a compressed file, or a file whose encoding does not show where
records end, only from the beginning, as a stream. Files behind URLs are read by `remote`, members
of archives by `zip_member`.
"""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from ringhaul.errors import SourceChanged, SourceCorrupt
from ringhaul.formats.compression import Decompressed
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.parquet_file import Footers, ParquetSource
from ringhaul.formats.parquet_footer import Footer, Stored, read_footer
from ringhaul.formats.parquet_leaves import leaves_of
from ringhaul.formats.parquet_read import Reads, group_reads, parquet_errors
from ringhaul.formats.parquet_watch import PageWatch
from ringhaul.formats.pieces import Stream
from ringhaul.formats.suffixes import compression_of
from ringhaul.formats.transcoding import Transcoded
from ringhaul.formats.zip_member import open_member
from ringhaul.sources.local_file import LocalFile, check_local
from ringhaul.sources.source import SourceFile
from ringhaul.storage import remote
from ringhaul.storage.access import access, check_file, check_place, is_url, scheme_of
from ringhaul.storage.lanes import LaneReader
from ringhaul.storage.remote import RemoteFile, RemoteReader
from ringhaul.storage.roots import OutsideRoots

#: Bytes of each column of a file on a disk that are read at a time. Without it pyarrow holds a
#: column's share of the row group whole: 302 MB in one group took a process from 60 to 408 MB, and
#: with this to 114 MB, in the same time. 8 MiB give 140 MB.
PARQUET_BUFFER_BYTES = 1 << 20
#: The most for all columns that are read, which may be thousands, and the least for each.
PARQUET_BUFFERS_BYTES = 64 << 20
PARQUET_BUFFER_BYTES_MIN = 16 << 10
#: Buffer of a column that is read beside others from a URL: `LaneReader` holds the bytes.
LANE_BUFFER_BYTES = 64 << 10
#: Timestamps of Spark, Hive and Impala (INT96) in microseconds, as they are in the years 1 to 9999:
#: in nanoseconds, pyarrow's default, times outside of 1677 to 2262 come out as other times.
_PARQUET: dict[str, Any] = {
    "pre_buffer": False,
    "coerce_int96_timestamp_unit": "us",
    "page_checksum_verification": True,
}


_FOOTERS = Footers()


def _remote(source: SourceFile) -> RemoteFile:
    return RemoteFile(source.path, source.size_bytes, source.version)


def check_unchanged(source: SourceFile) -> None:
    """Raise `SourceChanged` if the file has changed since it was found.

    Raises `SourceMissing`, `SourceUnavailable`, and `OutsideRoots` for a place that this host does
    not open for jobs. If the source is a member of an archive, the archive is checked.
    """
    source = source.stored
    check_place(source.path)
    if access().allowed_roots and scheme_of(source.path) == "file":
        raise OutsideRoots(f"{source.path}: give it as a path, as jobs of ringhaul do")
    if is_url(source.path):
        remote.check_unchanged(_remote(source))
        return
    check_local(source)


@contextmanager
def open_range(source: SourceFile, offset_bytes: int, length_bytes: int) -> Iterator[Stream]:
    """Read `length_bytes` of a plain file from `offset_bytes` on.

    Raises `SourceMissing`, and `SourceChanged` if the file has changed since it was found, now or
    when its bytes are read.
    """
    check_unchanged(source)
    with open_stored(source, offset_bytes + length_bytes) as file:
        file.seek(offset_bytes)
        yield Range(file, source, length_bytes)


@contextmanager
def open_whole(source: SourceFile, dialect: CsvDialect) -> Iterator[Stream]:
    """Read a whole file: decompressed, and decoded where ``dialect.decoding`` is "stream".

    Raises `SourceMissing`, `SourceChanged` as `open_range` does, and `SourceCorrupt` from `read`.
    """
    check_unchanged(source)
    with open_stored(source) as file:
        yield decoded(source, file, dialect)


@contextmanager
def open_parquet(
    source: SourceFile,
    group: int | None = None,
    columns: Sequence[str] = (),
    footer: Footer | None = None,
) -> Iterator[ParquetSource]:
    """Open a Parquet file and read its footer.

    `group`, `columns`: what will be read, which helps to read ahead behind a URL. `footer`: the
    footer of the file, if it was read before.
    Raises `SourceMissing`, `SourceChanged` as `open_range` does, and `SourceCorrupt`.
    """
    check_unchanged(source)
    if not is_url(source.path):
        with open_local(source) as checked, _blaming_change(checked):
            # pyarrow opens files by name: this name is the file that was checked, wherever the
            # path leads by now.
            same = f"/proc/self/fd/{checked.fileno()}"
            path = same if os.path.exists(same) else source.path
            with parquet_errors(source.path):
                stored = Stored(partial(_pread, checked.fileno()), source.size_bytes)
                footer = footer or _FOOTERS.find(checked.fileno()) or read_footer(stored)
                file = ParquetSource(
                    path,
                    footer=footer,
                    stored=stored,
                    look=checked.look,
                    buffer_size=_buffer_bytes(columns),
                    **_PARQUET,
                )
                _FOOTERS.keep(checked.fileno(), footer)
            with file:
                yield file
                checked.look()
        return
    with remote.open_ranges(_remote(source), 0) as reader:
        with parquet_errors(source.path):
            whole_reads = pa.PythonFile(remote.WholeReads(reader), mode="r")
            places_read = Stored.of(whole_reads, source.size_bytes)
            footer = footer or read_footer(places_read)
            reads, buffer_bytes = Reads(), 0
            if group is not None:
                reads = group_reads(footer, group, columns, source.size_bytes)
                leaves = leaves_of(footer, group, columns)
                places: RemoteReader | LaneReader = reader
                if reads.lanes:
                    places = LaneReader(reader.request, reader, reads.lanes, reads.piece_bytes)
                    buffer_bytes = LANE_BUFFER_BYTES
                watched = remote.WholeReads(places, PageWatch(leaves).look)
                whole_reads = pa.PythonFile(watched, mode="r")
            reader.expect(reads.window_bytes)
            file = ParquetSource(whole_reads, footer=footer, buffer_size=buffer_bytes, **_PARQUET)
            file.read_at = places_read.read
        with file:
            yield file


@contextmanager
def _blaming_change(file: LocalFile) -> Iterator[None]:
    """Raise `SourceChanged` for what looks like damage if the file changed while it was read."""
    try:
        yield
    except SourceCorrupt:
        file.look()
        raise


def _pread(descriptor: int, at: int, size: int) -> bytes:
    return os.pread(descriptor, size, at)


def _buffer_bytes(columns: Sequence[str]) -> int:
    """Return the buffer size for each column that is read from a file on a disk."""
    share = PARQUET_BUFFERS_BYTES // max(len(columns), 1)
    return max(PARQUET_BUFFER_BYTES_MIN, min(PARQUET_BUFFER_BYTES, share))


def open_stored(source: SourceFile, window_bytes: int | None = None) -> io.RawIOBase:
    """Open a file to read its bytes as stored. `window_bytes`: see `remote.open_ranges`.

    A member of an archive is unpacked: its bytes are as before it was packed.
    """
    if source.archive is not None:
        member = source.archive.member
        return open_member(open_stored(source.stored, member.end_max), member, source.path)
    check_place(source.path)
    if is_url(source.path):
        if source.whole:
            return remote.open_stream(_remote(source))
        return remote.open_ranges(_remote(source), window_bytes)
    return open_local(source)


def open_local(source: SourceFile) -> LocalFile:
    """Open a file of this host to read its bytes as stored. Raises as `LocalFile` and `check_file`
    do."""
    file = LocalFile(source)
    try:
        check_file(file.fileno(), source.path)
    except BaseException:
        file.close()
        raise
    return file


def decoded(source: SourceFile, file: io.RawIOBase, dialect: CsvDialect) -> Stream:
    """Return the text in `file`, which has the stored bytes of `source`."""
    compression = compression_of(source.path)
    stream: Stream = (
        Decompressed(file, compression, source.path) if compression else io.BufferedReader(file)
    )
    return (
        Transcoded(stream, dialect.encoding, source.path)
        if dialect.decoding == "stream"
        else stream
    )


class Range:
    """The next bytes of a file as a stream, which raises `SourceChanged` if the file has fewer."""

    def __init__(self, file: Stream, source: SourceFile, length_bytes: int) -> None:
        self.file = file
        self.source = source
        self.left_bytes = length_bytes

    def read(self, size: int, /) -> bytes:
        data = self.file.read(min(size, self.left_bytes))
        if not data and self.left_bytes and size:
            raise SourceChanged(f"{self.source.path}: the file ended early; something shortened it")
        self.left_bytes -= len(data)
        return data
