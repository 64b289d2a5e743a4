"""A Parquet footer, read without asking pyarrow about chunks: see `parquet_walk`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ringhaul.formats import parquet_walk
from ringhaul.formats.parquet_pages import ReadAt
from ringhaul.option_names import job_option

Numbers = NDArray[np.int64]

#: How much of a file's end is read first, as pyarrow does.
_TAIL_BYTES = 64 << 10
MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
#: Bytes of footers that a process walks in Python, in 0.1 s, before it loads the compiled form.
_PLAIN_BYTES_MAX = 1 << 20
#: No file is larger: no file system allows it.
_STORED_BYTES_MAX = 1 << 50
_TYPES = (
    *("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY"),
    "FIXED_LEN_BYTE_ARRAY",
)
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


class Unreadable(pa.ArrowInvalid):  # type: ignore[misc]
    """A file has something that cannot be read. The message says what, and what to do."""


class Stored(NamedTuple):
    """The bytes of a file that can be read at any place."""

    read: ReadAt
    size_bytes: int

    @classmethod
    def of(cls, file: pa.NativeFile, size_bytes: int | None = None) -> Stored:
        """Return the bytes of an open file of pyarrow."""

        def read(at: int, size: int) -> bytes:
            file.seek(at)
            return bytes(file.read(size))

        return cls(read, file.size() if size_bytes is None else size_bytes)


class Chunk(NamedTuple):
    """What a footer says about a column of a row group."""

    path: str
    physical: str
    codec: str
    values_count: int
    unpacked_bytes: int
    stored_bytes: int
    #: Offset of its first byte in the file, which belongs to its dictionary if it has one.
    start: int
    delta: bool  #: some pages hold differences


class Footer:
    """The footer of a file."""

    def __init__(
        self, metadata: pq.FileMetaData, paths: Sequence[str], groups: Numbers, chunks: Numbers
    ) -> None:
        """`groups`, `chunks`: the figures that `parquet_walk.walk_footer` notes."""
        self.metadata, self.schema = metadata, metadata.schema
        #: Leaf columns, such as `tags.list.element`, in the order of the chunks of each group.
        self.paths = paths
        self._rows = groups
        self._chunks = chunks.reshape(len(groups), len(paths), parquet_walk.WIDTH)

    @property
    def groups_count(self) -> int:
        return len(self._rows)

    @property
    def rows_count(self) -> int:
        return int(self.metadata.num_rows)

    def rows_of(self, group: int) -> int:
        """Return the number of rows of a row group. Raises `pa.ArrowInvalid` if there is none."""
        if not 0 <= group < len(self._rows):
            raise pa.ArrowInvalid(f"it has no row group {group}")
        return int(self._rows[group])

    def stored_bytes(self, group: int) -> int:
        """Return the stored bytes of a row group's columns."""
        # Whatever a damaged footer says, the sum is no negative number.
        sizes = self._chunks[group, :, parquet_walk.STORED_BYTES]
        return int(np.clip(sizes, 0, _STORED_BYTES_MAX).sum())

    def spans(self, group: int) -> list[tuple[int, int]]:
        """Return the offset in the file and the stored bytes of each chunk of a row group."""
        return [
            (self._start(numbers), int(numbers[parquet_walk.STORED_BYTES]))
            for numbers in self._chunks[group]
        ]

    def chunk(self, group: int, column: int) -> Chunk:
        """Return what is known of a chunk. Raises `Unreadable` and `pa.ArrowInvalid`."""
        self.check(column, group)
        numbers = self._chunks[group, column].tolist()
        start = self._start(self._chunks[group, column])
        figures = (start, numbers[parquet_walk.STORED_BYTES], numbers[parquet_walk.VALUES])
        if min(figures) < 0 or max(figures) > _STORED_BYTES_MAX:
            raise pa.ArrowInvalid(f"the footer has impossible figures for {self.paths[column]}")
        return Chunk(
            path=self.paths[column],
            physical=_TYPES[numbers[parquet_walk.TYPE]],
            codec=_CODECS[numbers[parquet_walk.CODEC]],
            values_count=numbers[parquet_walk.VALUES],
            unpacked_bytes=numbers[parquet_walk.UNPACKED_BYTES],
            stored_bytes=numbers[parquet_walk.STORED_BYTES],
            start=start,
            delta=bool(numbers[parquet_walk.FLAGS] & parquet_walk.DELTA),
        )

    def check(self, column: int, group: int | None = None) -> None:
        """Raise `Unreadable` if a leaf column cannot be read, in one row group or in any."""
        groups = slice(None) if group is None else slice(group, group + 1)
        numbers = self._chunks[groups, column]
        flags, path = numbers[:, parquet_walk.FLAGS], self.paths[column]
        name = path.partition(".")[0]
        if (flags & parquet_walk.ENCRYPTED).any():
            raise Unreadable(
                f"column {name} is encrypted, which ringhaul cannot read: leave it out with "
                f"{job_option('skip-columns')}, or write the file again without encryption"
            )
        types, codecs = numbers[:, parquet_walk.TYPE], numbers[:, parquet_walk.CODEC]
        for what, found, known in (("type", types, _TYPES), ("codec", codecs, _CODECS)):
            unknown = (found < 0) | (found >= len(known))
            if unknown.any():
                raise Unreadable(
                    f"column {path} has the unknown {what} {int(found[unknown][0])}: its footer is "
                    "damaged, or of a later version of Parquet"
                )
        if not (flags & parquet_walk.DESCRIBED).all():
            raise Unreadable(f"column {path} has no metadata: its footer is damaged")

    def _start(self, numbers: Numbers) -> int:
        data = int(numbers[parquet_walk.DATA_START])
        # Some writers write 0 if there is no dictionary.
        return min(data, int(numbers[parquet_walk.DICTIONARY_START]) or data)


def read_footer(file: Stored) -> Footer:
    """Read the footer at the end of a file.

    Raises `Unreadable`, and `pa.ArrowInvalid` for what is not a Parquet file or damaged.
    """
    tail_bytes = min(_TAIL_BYTES, file.size_bytes)
    tail = file.read(file.size_bytes - tail_bytes, tail_bytes)
    magic = tail[-4:]
    if magic == _ENCRYPTED_MAGIC:
        raise Unreadable(
            "its footer is encrypted, which ringhaul cannot read: write the file again without "
            "encryption"
        )
    if len(tail) < 12 or magic != MAGIC:
        raise pa.ArrowInvalid("it does not end with PAR1, as Parquet files do")
    length = int.from_bytes(tail[-8:-4], "little")
    if length + 12 > file.size_bytes:
        raise pa.ArrowInvalid(f"its footer is said to have {length:,} bytes, more than the file")
    if length + 8 > len(tail):
        data = file.read(file.size_bytes - length - 8, length)
    else:
        data = tail[len(tail) - length - 8 : -8]
    if len(data) != length:
        raise pa.ArrowInvalid("its footer cannot be read whole")
    return parse_footer(data)


def parse_footer(data: bytes) -> Footer:
    """Return the footer with these bytes; raises as `read_footer` does."""
    whole = b"".join((MAGIC, data, len(data).to_bytes(4, "little"), MAGIC))
    try:
        metadata = pq.read_metadata(pa.BufferReader(whole))
        schema = metadata.schema
        paths = [str(schema.column(number).path) for number in range(metadata.num_columns)]
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"the column name {bytes(error.object)!r} is not UTF-8: write the file again with "
            "names in UTF-8"
        ) from None
    groups_count, chunks_count = metadata.num_row_groups, metadata.num_row_groups * len(paths)
    if chunks_count > len(data):
        raise pa.ArrowInvalid("its footer is damaged")
    walked = _walked(data, groups_count, chunks_count)
    if walked is None:
        raise pa.ArrowInvalid("its footer is damaged")
    return Footer(metadata, paths, *walked)


_walked_bytes = 0


def _walked(data: bytes, groups_count: int, chunks_count: int) -> tuple[Numbers, Numbers] | None:
    """Return what a walk notes of groups and chunks, None: the footer is damaged.

    The walk is compiled where that pays or costs nothing.
    """
    global _walked_bytes
    _walked_bytes += len(data)
    shape = (chunks_count, parquet_walk.WIDTH)
    if _walked_bytes <= _PLAIN_BYTES_MAX and "numba" not in sys.modules:
        rows = [0] * groups_count
        figures = [[0] * parquet_walk.WIDTH for _ in range(chunks_count)]
        stack = [[0] * 5 for _ in range(parquet_walk.DEPTH_MAX)]
        if parquet_walk.walk_footer(data, rows, figures, stack) == parquet_walk.DAMAGED:
            return None
        return _numbers(rows, (groups_count,)), _numbers(figures, shape)
    from ringhaul.formats.footer_kernels import walk_footer

    groups, chunks = np.zeros(groups_count, np.int64), np.zeros(shape, np.int64)
    frames = np.zeros((parquet_walk.DEPTH_MAX, 5), np.int64)
    end = walk_footer(np.frombuffer(data, np.uint8), groups, chunks, frames)
    return None if end == parquet_walk.DAMAGED else (groups, chunks)


def _numbers(values: Sequence[object], shape: tuple[int, ...]) -> Numbers:
    return np.array(values, np.int64).reshape(shape)
