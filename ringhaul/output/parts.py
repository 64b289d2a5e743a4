"""Write the part files of an unload: each attempt of a unit writes its own.

A part is named `part-<unit>-<number>-<job>-<attempt>.csv`: sorted by name, parts are in the order
of units. Two attempts of a unit may write at once, since a worker that is presumed dead may
continue, and their files differ; as each file name contains the attempt, neither touches the
other's. The manifest lists the parts of the attempt whose commit counts; the other parts of the job
are removed at the end (`remove_orphans`).
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import zlib
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ringhaul.cql.types import CqlType
from ringhaul.formats.write.options import OutputFormat
from ringhaul.storage.folders import NewFile, open_folder

if TYPE_CHECKING:
    from ringhaul.formats.write.writer import RowWriter

#: A part with a limited size is written in steps of this share of it.
_STEPS_PER_PART = 8
#: crc32 costs 16 ns for a row of 70 bytes, sha256 39 ns with a CPU that has instructions for it
#: and five times that without: over a tenth of what the CSV itself costs.
CHECKSUM = "crc32"

_WORD = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, kw_only=True)
class PartInfo:
    """A part that is complete and visible."""

    name: str
    rows: int
    bytes: int  #: size of the file
    checksum: str  #: the file's checksum, such as "crc32:0a1b2c3d" or "sha256:..."
    #: The tokens of its rows, (after, up to]: the bounds of its unit. None: not by token.
    token_after: int | None = None
    token_to: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PartInfo:
        return cls(**data)


class PartSet:
    """The parts that one attempt of a unit writes.

    A part ends at about `rows_max` rows or `bytes_max` bytes of its file (0: no bound), and has at
    least one row. `first_number`: number of its first part, if earlier attempts left parts for
    good. `tokens`: the bounds of the unit, (after, up to].

    Methods raise `OutputUnusable` (terminal: disk full, access denied) and `OutputUnavailable`.
    """

    def __init__(
        self,
        url: str,
        fmt: OutputFormat,
        names: Sequence[str],
        types: Sequence[CqlType],
        *,
        job: str,
        unit: int,
        attempt: str,
        rows_max: int = 0,
        bytes_max: int = 0,
        first_number: int = 0,
        tokens: tuple[int, int] | None = None,
        checksum: str = CHECKSUM,
    ) -> None:
        if not _WORD.fullmatch(attempt):
            raise ValueError(f"an attempt's token is letters and digits, not {attempt!r}")
        self.kind = fmt.kind  #: csv, jsonl or parquet
        self._folder = open_folder(url)
        self._format, self._names, self._types = fmt, list(names), list(types)
        self._job, self._unit, self._attempt = job, unit, attempt
        self._rows_max, self._bytes_max = rows_max, bytes_max
        self._number = first_number
        self._tokens = tokens or (None, None)
        self._checksum = checksum
        self._below = ""  # folder of the parts below the output's folder, with a slash
        self._open: _OpenPart | None = None
        #: Complete parts, in order.
        self.parts: list[PartInfo] = []

    def within(self, folder: str) -> PartSet:
        """Return a set like this for a folder below; names of its parts lack the folder."""
        other = copy(self)
        other._below, other._open, other.parts = f"{folder}/", None, []
        return other

    def write(self, batch: pa.RecordBatch) -> list[int]:
        """Write rows, in as many parts as needed; return those too long for a load to read."""
        too_long: list[int] = []
        first = 0
        while batch.num_rows:
            if self._open is None:
                self._open = self._begin()
            taken = batch.slice(0, self._step_rows(batch, self._open))
            batch = batch.slice(taken.num_rows)
            too_long += [first + row for row in self._open.write(taken)]
            first += taken.num_rows
            if self._is_full(self._open):
                self.roll()
        return too_long

    def roll(self) -> None:
        """Publish the part that is being written, if any; the next row begins another."""
        if self._open is None:
            return
        part = self._open
        part.finish()
        self._open = None
        after, to = self._tokens
        self.parts.append(
            PartInfo(
                name=part.name,
                rows=part.rows,
                bytes=part.file.bytes,
                checksum=part.file.checksum,
                token_after=after,
                token_to=to,
            )
        )

    def abandon(self) -> None:
        """Remove the part that is being written. Published parts stay."""
        if self._open is not None:
            self._open.discard()
            self._open = None

    def withdraw(self) -> None:
        """Remove everything this attempt wrote, because another attempt's commit counted."""
        self.abandon()
        while self.parts:
            self._folder.remove(self.parts[-1].name)
            self.parts.pop()

    def _begin(self) -> _OpenPart:
        name = part_name(self._job, self._unit, self._number, self._attempt, self._format)
        self._number += 1
        file = Measured(self._folder.create(self._below + name), self._checksum)
        try:
            from ringhaul.formats.write.writer import open_writer  # commands only list parts

            writer = open_writer(self._format, file, self._names, self._types)
        except BaseException:
            file.inner.discard()
            raise
        return _OpenPart(name, file, writer)

    def _step_rows(self, batch: pa.RecordBatch, part: _OpenPart) -> int:
        rows = int(batch.num_rows)
        if self._rows_max:
            rows = min(rows, self._rows_max - part.rows)
        if self._bytes_max:
            step_bytes = max(1, self._bytes_max // _STEPS_PER_PART)
            rows = min(rows, max(1, batch.num_rows * step_bytes // max(1, int(batch.nbytes))))
        return rows

    def _is_full(self, part: _OpenPart) -> bool:
        if self._rows_max and part.rows >= self._rows_max:
            return True
        return bool(self._bytes_max) and part.size_bytes >= self._bytes_max


class _OpenPart:
    def __init__(self, name: str, file: Measured, writer: RowWriter) -> None:
        self.name, self.file, self.writer = name, file, writer
        self.rows = 0

    @property
    def size_bytes(self) -> int:
        return self.file.bytes + self.writer.pending_bytes

    def write(self, batch: pa.RecordBatch) -> list[int]:
        self.rows += batch.num_rows
        return self.writer.write(batch)

    def finish(self) -> None:
        self.writer.close()
        self.file.inner.publish()

    def discard(self) -> None:
        self.writer.abandon()
        self.file.inner.discard()


class Sum(Protocol):
    def update(self, data: Any, /) -> None: ...

    def hexdigest(self) -> str: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: Any, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


class Measured:
    """A new file, with its size and checksum so far."""

    def __init__(self, inner: NewFile, checksum: str) -> None:
        self.inner = inner
        self.bytes = 0
        self._kind = checksum
        self._sum: Sum = new_sum(checksum)

    @property
    def checksum(self) -> str:
        return f"{self._kind}:{self._sum.hexdigest()}"

    def write(self, data: Any, /) -> int:
        self._sum.update(data)
        self.bytes += len(data)
        self.inner.write(data)
        return len(data)


def new_sum(kind: str) -> Sum:
    """Return a running checksum: "crc32", or any that `hashlib` knows."""
    return _Crc32() if kind == "crc32" else hashlib.new(kind)


def part_name(job: str, unit: int, number: int, attempt: str, fmt: OutputFormat) -> str:
    return f"part-{unit:06}-{number:06}-{job}-{attempt}{fmt.suffix}"


def remove_orphans(
    url: str, job: str, winners: Collection[str], *, deep: bool = False
) -> list[str]:
    """Remove the job's parts that are not in `winners`, and the remains of unfinished parts.
    `deep`: whether to look in folders below as well.

    Other files are not touched. Returns the names removed. Safe to repeat.
    """
    folder = open_folder(url)
    of_job = re.compile(rf"\.?part-\d{{6,}}-\d{{3,}}-{re.escape(job)}-[A-Za-z0-9]+\.[a-z0-9.]+")
    names = [
        name
        for name in folder.sizes(deep=deep)
        if of_job.fullmatch(posixpath.basename(name)) and name not in winners
    ]
    for name in names:
        folder.remove(name)
    return sorted(names)
