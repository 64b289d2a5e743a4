"""Files behind URLs: find them, check that they are unchanged, and read their bytes.

`s3://` and `gs://` (and what else fsspec knows, if it is allowed) have objects, globs and folders;
`http://` and `https://` have single files. Bytes are read by ranges, in few large requests that
run ahead of the reader: with one request per MiB it would wait longer than it reads.
"""

from __future__ import annotations

import glob
import io
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Protocol

from ringhaul.errors import SourceChanged, SourceMissing, SourceUnavailable, UsageError
from ringhaul.storage.access import (
    WEB_SCHEMES,
    check_url,
    is_url,
    mask_url,
    same_version,
    scheme_of,
)
from ringhaul.storage.errors import store_errors
from ringhaul.storage.hidden import hides, is_hidden_below
from ringhaul.storage.lanes import LaneReader
from ringhaul.storage.store_ranges import StoreRanges
from ringhaul.storage.stores import open_store
from ringhaul.storage.web import WebFile, WebRanges, WebStream, stat_web

#: Size of one request in sequential reading. A unit of 64 MiB is eight of them; S3 gives some
#: 80 MB/s on one connection after a latency of 20 to 50 ms, so that little of the time is latency.
PIECE_BYTES = 8 << 20
#: Size of the first request, as a reader may want only the beginning, such as a header; each
#: further request is four times as large.
FIRST_BYTES = 256 << 10
#: Requests that run ahead of the reader. With the piece that is being read, 32 MiB at most.
AHEAD = 3
#: Fields in which a store keeps the version of an object's content, best first.
_VERSION_FIELDS = ("ETag", "etag", "generation", "LastModified", "updated", "mtime", "created")

#: Raises a plain `SourceMissing` or `SourceUnavailable` for a source behind a URL.
_store_errors = partial(store_errors, refused=SourceMissing, away=SourceUnavailable)


class RemoteFile(NamedTuple):
    """A file behind a URL."""

    path: str  #: its URL
    size_bytes: int
    #: Changes when the file does: ETag, generation or time of the last change. "": not known.
    version: str
    #: Whether its server serves parts of it.
    ranges: bool = True


def is_remote(path: str) -> bool:
    """Return whether a source is a URL of something other than a file of this host."""
    return is_url(path) and scheme_of(path) != "file"


def stat_file(url: str) -> RemoteFile:
    """Return one file. Raises `SourceMissing` (none, not permitted, ...), `SourceUnavailable`."""
    check_url(url)
    if scheme_of(url) in WEB_SCHEMES:
        return RemoteFile(*stat_web(url))
    store, path = _store(url)
    with _store_errors(url):
        info = store.info(path)
    if info["type"] != "file":
        raise SourceMissing(f"{mask_url(url)}: is a folder, not an object")
    return _file(url, path, info)


class Listing(NamedTuple):
    """What a URL names, sorted."""

    files: list[RemoteFile]
    #: URLs of the folders that a glob matches.
    folders: list[str]
    #: Files that were found and left out, as they are kept aside: see `hidden`.
    aside: list[RemoteFile]


def list_files(url: str) -> list[RemoteFile]:
    """Return the files that a URL names: see `list_matches`."""
    return list_matches(url).files


def list_matches(url: str) -> Listing:
    """Return what a URL names: an object; what a glob matches; all files below a folder.

    What is kept aside is left out, unless the URL names it. Empty if nothing is found.
    Raises `UsageError`, `SourceMissing` (no bucket, no right to list it) and `SourceUnavailable`.
    """
    check_url(url)
    if scheme_of(url) in WEB_SCHEMES:
        if "*" in url.partition("?")[0] or url.endswith("/"):
            raise UsageError(
                f"{mask_url(url)}: a web server does not list its files: name each of them"
            )
        return Listing([stat_file(url)], [], [])
    store, path = _store(url)
    with _store_errors(url):
        found = _infos(store, path, folder=url.endswith("/"))
        if not found:
            _look_at_bucket(store, url, path)
    listed = sorted(found.items())
    aside = set[str]()
    if path not in found:
        is_aside = hides if glob.has_magic(path) else is_hidden_below
        aside = {name for name, info in listed if is_aside(path, name, info["type"] == "file")}
    shown = [(name, info) for name, info in listed if name not in aside]
    return Listing(
        [_file(url, name, info) for name, info in shown if info["type"] == "file"],
        [_url(url, name) for name, info in shown if info["type"] == "directory"],
        [_file(url, name, found[name]) for name in aside if found[name]["type"] == "file"],
    )


def _infos(store: Any, path: str, *, folder: bool) -> dict[str, Any]:
    """Return names, and what the store says about each."""
    if not folder:
        with suppress(FileNotFoundError):
            info = store.info(path)
            if info["type"] == "file":
                return {path: info}
    if not glob.has_magic(path):
        below = store.find(path.rstrip("/") + "/", detail=True)
        return {
            name: info
            for name, info in below.items()
            if info["type"] == "file"
            and not name.endswith("/")  # some tools create these to show a folder
        }
    try:
        matches: dict[str, Any] = store.glob(path, detail=True)
    except ValueError as error:  # such as of `**` within a name
        raise UsageError(f"{path}: {error}") from error
    return matches


def _look_at_bucket(store: Any, url: str, path: str) -> None:
    """Raise `SourceMissing` if the bucket does not exist: a glob in it just finds nothing."""
    bucket = path.partition("/")[0]
    try:
        store.info(bucket)
    except FileNotFoundError as error:
        if error.__cause__ is not None:  # an empty bucket is not found either, without a cause
            raise SourceMissing(f"{mask_url(url)}: there is no bucket {bucket}") from error


def _file(url: str, path: str, info: dict[str, Any]) -> RemoteFile:
    return RemoteFile(_url(url, path), int(info["size"]), _version(info))


def _url(url: str, path: str) -> str:
    """Return the URL of a store's path. Not by `unstrip_protocol`: the URL must keep the scheme of
    `url`, which is allowed."""
    return f"{url.partition('://')[0]}://{path.lstrip('/')}"


def _version(info: dict[str, Any]) -> str:
    value = next((info[name] for name in _VERSION_FIELDS if info.get(name)), "")
    if isinstance(value, datetime):
        value = value.timestamp()
    # Times in whole seconds: a listing and a single look-up differ in their precision.
    return str(int(value) if isinstance(value, float) else value).strip('"')


def check_unchanged(file: RemoteFile) -> None:
    """Raise `SourceChanged` if the file is gone or has changed since it was found."""
    try:
        now = stat_file(file.path)
    except SourceMissing as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise SourceChanged(f"{mask_url(file.path)}: the file is gone") from error
    if now.size_bytes != file.size_bytes:
        raise SourceChanged(
            f"{mask_url(file.path)}: the file is {now.size_bytes:,} bytes now "
            f"and was {file.size_bytes:,} when the job started; "
            "start again once nothing writes to it"
        )
    if not same_version(now.version, file.version):
        raise SourceChanged(
            f"{mask_url(file.path)}: the file was replaced since the job started "
            f"({file.version} then, {now.version} now); start again with a new job"
        )


def read_small(url: str) -> bytes | None:
    """Return the content of a small file; None if it does not exist. Raises like `stat_file`."""
    try:
        file = stat_file(url)
    except SourceMissing:
        return None
    with open_stream(file) as opened:
        return opened.read()


def open_ranges(file: RemoteFile, window_bytes: int | None = None) -> RemoteReader:
    """Open a file at its beginning, to read at any position. Opening it reads nothing.

    `window_bytes`: end of the wanted bytes, which begin where reading does: read ahead from the
    beginning, but not beyond it. None: read ahead if reading is sequential, up to the end.
    Reading raises `SourceChanged`, `SourceMissing` and `SourceUnavailable`.
    """
    check_url(file.path)
    ranges: Ranges
    if scheme_of(file.path) in WEB_SCHEMES:
        ranges = WebRanges(WebFile(*file))
    else:
        ranges = StoreRanges(file.path, file.version)
    return RemoteReader(ranges, file.size_bytes, window_bytes)


def open_stream(file: RemoteFile) -> io.RawIOBase:
    """Open a file that is read once, from its beginning on. Raises like `open_ranges`."""
    if scheme_of(file.path) not in WEB_SCHEMES:
        return open_ranges(file)
    check_url(file.path)
    return _Streamed(WebStream(WebFile(*file)))


class Ranges(Protocol):
    """The source of a reader's bytes."""

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), all of them. Called from several threads."""

    def close(self) -> None: ...


class Piece:
    """A pending request for the bytes [start, end)."""

    def __init__(self, ranges: Ranges, start: int, end: int) -> None:
        self.start, self.end = start, end
        self._ranges = ranges
        self._data = b""
        self._error: BaseException | None = None
        # A daemon thread: a process can end without waiting for the request.
        self._thread = threading.Thread(target=self._fetch, name="read-ahead", daemon=True)
        self._thread.start()

    def _fetch(self) -> None:
        try:
            self._data = self._ranges.fetch(self.start, self.end)
        except BaseException as error:
            self._error = error

    def data(self) -> bytes:
        """Wait for the bytes and return them. Raises what the request raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._data


class _ByRead(io.RawIOBase):
    """A file that defines `read`; the rest of reading follows from it."""

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readable(self) -> bool:
        return True


class RemoteReader(_ByRead):
    """A file that is read by ranges, in pieces that grow, with read-ahead once they are large."""

    def __init__(self, ranges: Ranges, size_bytes: int, window_bytes: int | None = None) -> None:
        self._ranges, self._size_bytes = ranges, size_bytes
        self._window = size_bytes
        self._first_bytes = FIRST_BYTES
        self._at = 0
        self._held, self._held_start = b"", 0
        self._ahead: deque[Piece] = deque()
        self._next_bytes = FIRST_BYTES
        if window_bytes is not None:
            self.expect(window_bytes)

    def expect(self, window_bytes: int) -> None:
        """Expect reads of everything up to this offset, and little beyond. 0: scattered reads."""
        self._window = min(window_bytes, self._size_bytes)
        self._first_bytes = self._next_bytes = PIECE_BYTES if window_bytes else FIRST_BYTES

    def request(self, start: int, end: int) -> Piece:
        """Request some bytes independently of the reader's position."""
        return Piece(self._ranges, start, end)

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, those at hand first; none only at the end."""
        if size < 0:
            return self.readall()
        if size == 0 or self._at >= self._size_bytes:
            return b""
        begin = self._at - self._held_start
        if not 0 <= begin < len(self._held):
            self._next(size)
            begin = 0
        data = self._held[begin : begin + size]
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._ahead.clear()
            self._held = b""
            self._ranges.close()
        super().close()

    def _next(self, size: int) -> None:
        """Hold the piece that begins at the reader's position."""
        if self._at != self._held_start + len(self._held):  # after a seek
            self._next_bytes = self._first_bytes
        if not self._ahead or self._ahead[0].start != self._at:
            self._ahead.clear()
            self._ask(self._at, size)
        # A reader that came this far reads sequentially: request more while this is waited for.
        while self._next_bytes == PIECE_BYTES and len(self._ahead) <= AHEAD:
            start = self._ahead[-1].end
            if start >= self._window:
                break
            self._ask(start, PIECE_BYTES)
        piece = self._ahead.popleft()
        self._held = b""  # freed before the next piece is taken, not kept beside it
        self._held, self._held_start = piece.data(), piece.start

    def _ask(self, start: int, size: int) -> None:
        if start < self._window:
            end = min(start + max(size, self._next_bytes), self._window)
            self._next_bytes = min(self._next_bytes * 4, PIECE_BYTES)
        else:  # requested explicitly, beyond the window
            end = min(start + max(size, FIRST_BYTES), self._size_bytes)
        self._ahead.append(Piece(self._ranges, start, end))


class WholeReads(_ByRead):
    """A file for pyarrow, which takes a short read for the file's end.

    `io.BufferedReader` would do, but ends large reads with small reads, which are requests here.
    """

    def __init__(
        self, file: RemoteReader | LaneReader, look: Callable[[int, bytes], None] | None = None
    ) -> None:
        """`look`: called with the position and bytes of a read, before the reader gets them."""
        self._file, self._look = file, look

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            return self.readall()
        at = self._file.tell()
        data = self._file.read(size)
        while len(data) < size and (more := self._file.read(size - len(data))):
            data += more
        if self._look is not None:
            self._look(at, data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class _Streamed(_ByRead):
    """A stream as a file that only goes forward."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self._at = 0

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            return self.readall()
        data = self._stream.read(size)
        self._at += len(data)
        return data

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _store(url: str) -> tuple[Any, str]:
    return open_store(url)
