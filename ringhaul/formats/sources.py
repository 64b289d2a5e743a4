"""Where records come from: files, globs and directories, plain, compressed or in other encodings.

The only module here that touches the file system; what lies behind URLs is `remote`'s. A plain file
is read by ranges; a compressed one, or one whose encoding does not show where records end, only as
a whole, as a stream.
"""

import bz2
import codecs
import difflib
import glob
import gzip
import io
import json
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from ringhaul.errors import SourceChanged, SourceCorrupt, SourceMissing, UsageError
from ringhaul.formats import remote
from ringhaul.formats.dialect import RFC_4180, CsvDialect
from ringhaul.formats.parquet_read import group_window, told
from ringhaul.formats.pieces import Stream
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.remote import RemoteFile, is_remote
from ringhaul.storage.access import WEB_SCHEMES, check_url, is_url, scheme_of, shown

FORMATS = ("csv", "jsonl", "parquet")
#: Format -> the suffixes of its files, those of a compression left out.
SUFFIXES = {
    "csv": (".csv", ".tsv", ".txt"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet",),
}
#: What tells a folder that an unload has written, and which of its files belong to it.
MANIFEST = "manifest.json"
#: `estimate_records` counts the lines of files up to this size and samples larger ones.
ESTIMATE_WHOLE_BYTES = 16 * 2**20
ESTIMATE_SAMPLES = 8
#: The same behind URLs, where the bytes of many files come over one network.
ESTIMATE_REMOTE_BYTES = 2 * 2**20
#: A sample misleads where record lengths drift through the file; too many is harmless.
ESTIMATE_MARGIN = 1.5


class SourceFile(NamedTuple):
    """A file to read."""

    #: Absolute, or a URL.
    path: str
    #: Of the file as it is stored.
    size_bytes: int
    #: It can only be read from its beginning to its end: one unit.
    whole: bool
    #: Behind a URL: see `RemoteFile`.
    version: str = ""

    @property
    def remote(self) -> RemoteFile:
        return RemoteFile(self.path, self.size_bytes, self.version)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


_DECOMPRESSORS: dict[str, Callable[[io.BufferedReader], _Readable]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda file: pa.CompressedInputStream(file, "zstd"),
}
_DECOMPRESSION_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException)


def find_sources(
    args: Sequence[str], dialect: CsvDialect = RFC_4180, file_format: str = "auto"
) -> list[SourceFile]:
    """The files that `args` name: files, globs, folders searched at all depths, URLs of all these.

    A file that is named twice is read once, where it comes first. `file_format`: one of `FORMATS`,
    or "auto": each file's is told by its suffix. Raises `SourceMissing` and `UsageError` naming
    the argument that gives nothing to read, and `SourceUnavailable`.
    """
    paths: dict[str, RemoteFile | None] = {}
    for arg in args:
        if is_remote(arg):
            paths |= {file.path: file for file in _find_remote(arg, file_format)}
        else:
            found = _find(local_path(arg), file_format)
            paths.update((os.path.abspath(path), None) for path in found)
    return [
        _source(path, dialect, format_of(path, file_format))
        if file is None
        else _remote_source(file, dialect, format_of(path, file_format))
        for path, file in paths.items()
    ]


def local_path(arg: str) -> str:
    """A path, also of a `file://` URL. Raises `UsageError` if it is of another host."""
    if not is_url(arg):
        return arg
    check_url(arg)
    parts = urlsplit(arg)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(f"{arg}: a file:// URL is of this host; give file:///path")
    return unquote(parts.path)


def format_of(path: str, file_format: str = "auto") -> str:
    """The format of a file: the one given, or by its suffix; CSV if that says nothing."""
    if file_format != "auto":
        return file_format
    suffix = os.path.splitext(_plain_name(path))[1]
    return next((name for name, known in SUFFIXES.items() if suffix in known), "csv")


def _plain_name(path: str) -> str:
    """A path in lower case, without the suffix of a compression."""
    plain = _named(path).lower()
    for suffix in _DECOMPRESSORS:
        plain = plain.removesuffix(suffix)
    return plain


def _named(path: str) -> str:
    """What has the file's suffix: of a web server's URL the path, without a query."""
    return urlsplit(path).path if is_url(path) and scheme_of(path) in WEB_SCHEMES else path


def _find(arg: str, file_format: str) -> list[str]:
    if os.path.isdir(arg):
        parts = _unloaded_parts(arg)
        if parts is not None:
            return parts
        suffixes = _suffixes(file_format)
        found = sorted(_files_below(Path(arg), suffixes))
        if not found:
            raise _nothing_below(arg, suffixes)
        return found
    if os.path.lexists(arg):
        return [arg]
    if glob.has_magic(arg):
        found = sorted(path for path in glob.glob(arg, recursive=True) if os.path.isfile(path))
        if not found:
            raise SourceMissing(f"{arg}: no file matches")
        return found
    raise SourceMissing(f"{arg}: no such file{_nearest(arg)}")


def _unloaded_parts(folder: str) -> list[str] | None:
    """The files that the manifest of an unload lists; None where there is none of ours.

    What else lies in the folder, such as a part of an attempt that did not count, is no part of it.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as file:
            names = _listed(file.read(), folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceMissing(f"{path}: {error.strerror or error}") from error
    if names is None:
        return None
    for name in names:
        if not os.path.isfile(os.path.join(folder, name)):
            raise SourceMissing(f"{folder}: its {MANIFEST} lists {name}, which is not there")
    return [os.path.join(folder, name) for name in names]


def _listed(manifest: bytes, folder: str) -> list[str] | None:
    """The names in the manifest of an unload; None: it is something else."""
    try:
        names = [str(part["name"]) for part in json.loads(manifest)["parts"]]
    except (ValueError, KeyError, TypeError):
        return None
    if not names:
        raise UsageError(f"{folder}: its {MANIFEST} lists no file: nothing was unloaded")
    for name in names:
        if "/" in name or name in ("", ".", ".."):
            raise UsageError(f"{folder}: its {MANIFEST} lists {name}, which is outside the folder")
    return names


def _find_remote(arg: str, file_format: str) -> list[RemoteFile]:
    """The same as `_find` of what a URL names."""
    check_url(arg)
    folder = arg.rstrip("/") + "/"
    if scheme_of(arg) in WEB_SCHEMES:
        parts = _unloaded_remote(folder) if arg.endswith("/") else None
        return parts or remote.list_files(arg)
    found = remote.list_files(arg)
    if not found:
        what = "no object matches" if glob.has_magic(arg) else "no such object or folder"
        raise SourceMissing(f"{shown(arg)}: {what}")
    if glob.has_magic(arg) or [file.path for file in found] == [arg]:
        return found
    if any(file.path == folder + MANIFEST for file in found):
        parts = _unloaded_remote(folder, {file.path: file for file in found})
        if parts is not None:
            return parts
    suffixes = _suffixes(file_format)
    wanted = [
        file
        for file in found
        if _plain_name(file.path).endswith(suffixes) and not file.path.endswith(f"/{MANIFEST}")
    ]
    if not wanted:
        raise _nothing_below(arg, suffixes)
    return wanted


def _unloaded_remote(
    folder: str, known: Mapping[str, RemoteFile] | None = None
) -> list[RemoteFile] | None:
    """The files that the manifest of an unload lists; None where there is none of ours."""
    manifest = remote.read_small(folder + MANIFEST)
    names = None if manifest is None else _listed(manifest, shown(folder))
    if names is None:
        return None
    if known is None:
        return [remote.stat_file(folder + name) for name in names]
    for name in names:
        if folder + name not in known:
            raise SourceMissing(f"{folder}: its {MANIFEST} lists {name}, which is not there")
    return [known[folder + name] for name in names]


def _suffixes(file_format: str) -> tuple[str, ...]:
    formats = FORMATS if file_format == "auto" else (file_format,)
    return tuple(suffix for name in formats for suffix in SUFFIXES[name])


def _nothing_below(folder: str, suffixes: tuple[str, ...]) -> UsageError:
    return UsageError(
        f"{folder}: the directory holds no {', '.join(suffixes)} file, plain or "
        f"compressed ({', '.join(_DECOMPRESSORS)}); name the files, or use a glob"
    )


def _files_below(folder: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name == MANIFEST:
                continue
            if not name.startswith(".") and _plain_name(name).endswith(suffixes):
                yield os.path.join(here, name)


def _nearest(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return f"; there is no directory {folder}"
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {os.path.join(folder, close[0])}?" if close else ""


def _source(path: str, dialect: CsvDialect, file_format: str) -> SourceFile:
    try:
        status = os.stat(path)
    except OSError as error:
        raise SourceMissing(f"{path}: {error.strerror or error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: not a regular file; pipe it in with - as the source")
    return SourceFile(path, status.st_size, _is_whole(path, dialect, file_format))


def _remote_source(file: RemoteFile, dialect: CsvDialect, file_format: str) -> SourceFile:
    whole = _is_whole(file.path, dialect, file_format)
    if file_format == "parquet" and not file.ranges:
        raise UsageError(
            f"{shown(file.path)}: its server gives no parts of a file, which Parquet needs; "
            "download it first"
        )
    return SourceFile(file.path, file.size_bytes, whole or not file.ranges, file.version)


def _is_whole(path: str, dialect: CsvDialect, file_format: str) -> bool:
    packed = _decompressor(path) is not None
    if file_format == "parquet" and packed:
        raise UsageError(f"{path}: a Parquet file is compressed within; unpack it first")
    return packed or (file_format != "parquet" and dialect.decoding == "stream")


def _decompressor(path: str) -> Callable[[io.BufferedReader], _Readable] | None:
    return _DECOMPRESSORS.get(os.path.splitext(_named(path))[1].lower())


def check_unchanged(source: SourceFile) -> None:
    """Raise `SourceChanged` unless the file still has the size it was found with.

    Behind a URL: unless it is the same version. Raises `SourceMissing` and `SourceUnavailable`.
    """
    if is_url(source.path):
        remote.check_unchanged(source.remote)
        return
    try:
        size_bytes = os.stat(source.path).st_size
    except FileNotFoundError:
        raise SourceChanged(
            f"{source.path}: the file is gone; "
            f"it was {source.size_bytes:,} bytes when the job began"
        ) from None
    if size_bytes != source.size_bytes:
        raise SourceChanged(
            f"{source.path}: the file is {size_bytes:,} bytes now "
            f"and was {source.size_bytes:,} when the job began; "
            "load it again once nothing writes to it"
        )


@contextmanager
def open_range(source: SourceFile, offset_bytes: int, length_bytes: int) -> Iterator[Stream]:
    """Read `length_bytes` of a plain file from `offset_bytes` on.

    Raises `SourceMissing`, and `SourceChanged` if the file has another size than it was found
    with or ends early.
    """
    check_unchanged(source)
    with _open(source, offset_bytes + length_bytes) as file:
        file.seek(offset_bytes)
        yield _Range(file, source, length_bytes)


@contextmanager
def open_parquet(
    source: SourceFile, group: int | None = None, columns: Sequence[str] = ()
) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file and read its footer.

    `group`, `columns`: what will be read of it, which helps to read ahead behind a URL.
    Raises `SourceMissing`, `SourceChanged` as `open_range` does, and `SourceCorrupt`.
    """
    check_unchanged(source)
    if not is_url(source.path):
        _open(source).close()
        with told(source.path):
            file = pq.ParquetFile(source.path, pre_buffer=False)
        with file:
            yield file
        return
    with remote.open_ranges(source.remote, 0) as reader:
        with told(source.path):
            # Buffered: pyarrow takes a short read for the file's end.
            whole_reads = pa.PythonFile(io.BufferedReader(reader), mode="r")
            file = pq.ParquetFile(whole_reads, pre_buffer=False)
        with file:
            if group is not None:
                reader.expect(group_window(file.metadata, group, columns))
            yield file


class _Range:
    def __init__(self, file: io.RawIOBase, source: SourceFile, length_bytes: int) -> None:
        self.file = file
        self.source = source
        self.left_bytes = length_bytes

    def read(self, size: int, /) -> bytes:
        data = self.file.read(min(size, self.left_bytes)) or b""
        if not data and self.left_bytes and size:
            raise SourceChanged(f"{self.source.path}: the file ended early; something shortened it")
        self.left_bytes -= len(data)
        return data


@contextmanager
def open_whole(source: SourceFile, dialect: CsvDialect) -> Iterator[Stream]:
    """Read a whole file: decompressed, and decoded where ``dialect.decoding`` is "stream".

    Raises `SourceMissing`, `SourceChanged` as `open_range` does, and `SourceCorrupt` from `read`.
    """
    check_unchanged(source)
    with _open(source) as file:
        yield _decoded(source, file, dialect)


def _open(source: SourceFile, window_bytes: int | None = None) -> io.RawIOBase:
    """The bytes as they are stored. `window_bytes`: see `remote.open_ranges`."""
    if is_url(source.path):
        if source.whole:
            return remote.open_stream(source.remote)
        return remote.open_ranges(source.remote, window_bytes)
    try:
        return open(source.path, "rb", buffering=0)
    except OSError as error:
        raise SourceMissing(f"{source.path}: {error.strerror or error}") from error


def _decoded(source: SourceFile, file: io.RawIOBase, dialect: CsvDialect) -> Stream:
    stream: Stream = _Decompressed(source, file)
    return _Transcoded(stream, dialect.encoding) if dialect.decoding == "stream" else stream


class _Decompressed:
    """A stream that tells of a broken archive in words."""

    def __init__(self, source: SourceFile, file: io.RawIOBase) -> None:
        self.path = source.path
        opener = _decompressor(source.path)
        self.inner: _Readable = file if opener is None else opener(io.BufferedReader(file))

    def read(self, size: int, /) -> bytes:
        try:
            return bytes(self.inner.read(size) or b"")
        except _DECOMPRESSION_ERRORS as error:
            suffix = os.path.splitext(self.path)[1]
            raise SourceCorrupt(
                f"{self.path}: cannot be decompressed as {suffix}: {error}; it is cut short, "
                "damaged, or misnamed"
            ) from error


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """Stand in for what cannot be decoded: becomes the byte 0xFF, as in `decode_bytes`."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("ringhaul.mark", _mark_undecodable)


class _Transcoded:
    """A stream decoded from any encoding, as UTF-8."""

    def __init__(self, inner: Stream, encoding: str) -> None:
        self.inner = inner
        self.decoder = codecs.getincrementaldecoder(encoding)("ringhaul.mark")
        self.ready = b""
        self.at_end = False

    def read(self, size: int, /) -> bytes:
        while not self.ready and not self.at_end:
            data = self.inner.read(size)
            self.at_end = not data
            text = self.decoder.decode(data, final=self.at_end)
            self.ready = text.encode("utf-8", "surrogateescape")
        given, self.ready = self.ready[:size], self.ready[size:]
        return given


def estimate_records(sources: Sequence[SourceFile], dialect: CsvDialect = RFC_4180) -> int:
    """About how many records `sources` hold, rather too many than too few.

    No record is shorter than a line, so lines are counted: all of a small file, samples of a
    large one, the beginning of a compressed one.
    """
    return sum(_estimate(source, dialect) for source in sources)


def _estimate(source: SourceFile, dialect: CsvDialect) -> int:
    most_bytes = ESTIMATE_REMOTE_BYTES if is_url(source.path) else ESTIMATE_WHOLE_BYTES
    with _open(source) as file:
        if source.whole:
            stream = _decoded(source, file, dialect)
            data = _read_up_to(stream, most_bytes)
            lines = count_line_ends(data, 0, len(data)) + 1
            used = file.tell()
            if len(data) < most_bytes or used == 0:
                return lines
            return int(lines / used * source.size_bytes * ESTIMATE_MARGIN) + 1
        if source.size_bytes <= most_bytes:
            data = _read_up_to(file, most_bytes)
            return count_line_ends(data, 0, len(data)) + 1
        sample_bytes = most_bytes // ESTIMATE_SAMPLES
        densest = 0.0
        for number in range(ESTIMATE_SAMPLES):
            file.seek((source.size_bytes - sample_bytes) * number // (ESTIMATE_SAMPLES - 1))
            data = _read_up_to(file, sample_bytes)
            densest = max(densest, (count_line_ends(data, 0, len(data)) + 1) / len(data))
        return int(densest * source.size_bytes * ESTIMATE_MARGIN) + 1


def _read_up_to(stream: Stream, size_bytes: int) -> bytes:
    chunks = []
    while size_bytes > 0 and (chunk := stream.read(size_bytes)):
        chunks.append(chunk)
        size_bytes -= len(chunk)
    return b"".join(chunks)
