"""Sources that change while a command reads them: versions of a file, and ways to change it.

Every version has rows of one width, so versions of one length have one size in every format.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.object_store import ObjectStore

ROWS = 2000
#: Rows of the version that is longer.
MORE_ROWS = 2300
KINDS = ("csv", "jsonl", "csv.gz", "parquet")
COMMANDS = ("load", "verify", "lookup", "exec")
#: A row: partition, number, value.
Row = tuple[int, int, str]


def rows_of(case: int, letter: str, count: int = ROWS) -> list[Row]:
    """The rows of a version. Rows of different letters share no key, and sort by number."""
    first = 10_000 if letter == "a" else 20_000
    return [(case, first + n, f"{letter}{n:05}{'.' * 40}") for n in range(count)]


def stored(rows: Sequence[Row], kind: str) -> bytes:
    """A file with these rows."""
    if kind == "jsonl":
        lines = (json.dumps({"c": c, "id": i, "v": v}) for c, i, v in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    if kind == "parquet":
        out = io.BytesIO()
        columns = {"c": pa.array([row[0] for row in rows], pa.int32())}
        columns |= {"id": pa.array([row[1] for row in rows], pa.int32())}
        columns |= {"v": pa.array([row[2] for row in rows])}
        pq.write_table(
            pa.table(columns), out, row_group_size=300, compression="none", use_dictionary=False
        )
        return out.getvalue()
    text = ("c,id,v\n" + "".join(f"{c},{i},{v}\n" for c, i, v in rows)).encode()
    return gzip.compress(text, 0, mtime=0) if kind == "csv.gz" else text


@dataclass(frozen=True)
class Source:
    """A source of one case, on a disk or in an object store."""

    kind: str
    place: Path | ObjectStore
    name: str

    @property
    def path(self) -> str:
        if isinstance(self.place, ObjectStore):
            return self.place.url(self.name)
        return str(self.place / self.name)

    def write(self, data: bytes) -> None:
        """Give the source this content in one step."""
        if isinstance(self.place, ObjectStore):
            self.place.put(self.name, data)
            return
        path = self.place / self.name
        other = path.with_name(f"{path.name}.new")
        other.write_bytes(data)
        os.replace(other, path)


#: What a change does, one step after each yield, and the versions that a reader may find.
Steps = Iterator[None]
Change = Callable[[Source, "Versions"], Steps]


@dataclass
class Versions:
    """The versions of a case's source; the first is there from the start."""

    case: int
    kind: str
    known: list[list[Row]] = field(default_factory=list)

    def add(self, rows: list[Row]) -> bytes:
        """Take these rows for a version, and return its bytes."""
        self.known.append(rows)
        return stored(rows, self.kind)


def _path(source: Source) -> Path:
    return Path(source.path)


def same_size(source: Source, versions: Versions) -> Steps:
    source.write(versions.add(rows_of(versions.case, "b")))
    yield


def other_size(source: Source, versions: Versions) -> Steps:
    source.write(versions.add(rows_of(versions.case, "b", MORE_ROWS)))
    yield


def there_and_back(source: Source, versions: Versions) -> Steps:
    source.write(versions.add(rows_of(versions.case, "b")))
    yield
    source.write(stored(versions.known[0], versions.kind))


def with_its_time(source: Source, versions: Versions) -> Steps:
    path = _path(source)
    before, other = path.stat(), path.with_name(f"{path.name}.new")
    other.write_bytes(versions.add(rows_of(versions.case, "b")))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    yield


def in_place(source: Source, versions: Versions) -> Steps:
    with _path(source).open("r+b") as file:
        file.write(versions.add(rows_of(versions.case, "b")))
    yield


def in_place_by_halves(source: Source, versions: Versions) -> Steps:
    case, half = versions.case, ROWS // 2
    old, new = versions.known[0], rows_of(case, "b")
    data = stored(new, versions.kind)
    at = len(data) // 2
    if versions.kind in ("csv", "jsonl"):
        mixed = versions.add(new[:half] + old[half:])
        at = len(stored(new[:half], versions.kind))
        assert mixed[:at] == data[:at]
    with _path(source).open("r+b", buffering=0) as file:
        file.write(data[:at])
        yield
        file.write(data[at:])
    versions.known.append(new)


def time_put_back(source: Source, versions: Versions) -> Steps:
    before = _path(source).stat()
    with _path(source).open("r+b") as file:
        file.write(versions.add(rows_of(versions.case, "b")))
    os.utime(_path(source), ns=(before.st_atime_ns, before.st_mtime_ns))
    yield


def truncated(source: Source, versions: Versions) -> Steps:
    rows = versions.known[0][: ROWS // 2]
    data = stored(rows, versions.kind)
    if versions.kind in ("csv", "jsonl"):
        versions.known.append(rows)
    os.truncate(source.path, len(data))
    yield


def appended(source: Source, versions: Versions) -> Steps:
    more = rows_of(versions.case, "b", MORE_ROWS - ROWS)
    data = b"no Parquet" if versions.kind == "parquet" else stored(more, versions.kind)
    if versions.kind.startswith("csv"):
        data = "".join(f"{c},{i},{v}\n" for c, i, v in more).encode()
    if versions.kind == "csv.gz":
        data = gzip.compress(data)
    if versions.kind != "parquet":
        versions.known.append(versions.known[0] + more)
    with _path(source).open("ab") as file:
        file.write(data)
    yield


def through_a_link(source: Source, versions: Versions) -> Steps:
    path = _path(source)
    other = path.with_name(f"{path.name}.linked")
    other.write_bytes(versions.add(rows_of(versions.case, "b")))
    link = path.with_name(f"{path.name}.link")
    link.symlink_to(other)
    os.replace(link, path)
    yield


def gone(source: Source, versions: Versions) -> Steps:
    if isinstance(source.place, ObjectStore):
        source.place.client().delete_object(Bucket=source.place.bucket, Key=source.name)
    else:
        _path(source).unlink()
    yield


def permissions(source: Source, versions: Versions) -> Steps:
    _path(source).chmod(0o640)
    yield


def nothing(source: Source, versions: Versions) -> Steps:
    yield


#: Changes that leave the content as it is: the command succeeds.
HARMLESS: tuple[Change, ...] = (permissions, nothing)
OF_FILES: tuple[Change, ...] = (
    *(same_size, other_size, there_and_back, with_its_time, in_place, in_place_by_halves),
    *(time_put_back, truncated, appended, through_a_link, gone, permissions, nothing),
)
OF_OBJECTS: tuple[Change, ...] = (same_size, other_size, there_and_back, gone, nothing)


@dataclass(frozen=True)
class Case:
    """One command, and the change of its source while it runs."""

    number: int
    command: str
    kind: str
    stored_in: str  #: "disk" or "store"
    change: Change
    slowly: bool  #: under a limit, so that it takes longer
    moment: float  #: of the change, as a share of the command's usual duration
    pause_s: float  #: between the steps of the change

    def __str__(self) -> str:
        words = (self.command, self.kind, self.stored_in, self.change.__name__)
        return (
            f"case {self.number}: {' '.join(words)}{' slowly' * self.slowly} at {self.moment:.2f}"
        )


def drawn(seed: int, count: int) -> list[Case]:
    """Return so many cases; each command, kind and change comes in turn."""
    numbers = random.Random(seed)
    pairs = [(kind, command) for kind in KINDS for command in COMMANDS]
    changes = [("disk", change) for change in OF_FILES] + [("store", c) for c in OF_OBJECTS]
    numbers.shuffle(pairs)
    numbers.shuffle(changes)
    cases = []
    for number in range(1, count + 1):
        (kind, command), (place, change) = (some[number % len(some)] for some in (pairs, changes))
        slowly, moment = numbers.random() < 0.5, numbers.uniform(0.05, 1.05)
        pause_s = numbers.choice((0.0, 0.002, 0.05))
        cases.append(Case(number, command, kind, place, change, slowly, moment, pause_s))
    return cases


def carry_out(case: Case, source: Source, versions: Versions) -> None:
    """Change the source, with pauses between the steps."""
    for _ in case.change(source, versions):
        time.sleep(case.pause_s)
