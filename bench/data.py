"""The files to load: generated once, reproducible, kept in the cache folder."""

from __future__ import annotations

import base64
import ipaddress
import itertools
import random
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

SEED = 20260101
_START = datetime(2026, 1, 1, tzinfo=UTC)


class Table(NamedTuple):
    """A table and the generator of its file. The first column is the partition key."""

    name: str
    columns: tuple[str, ...]
    schema: str  #: column definitions and primary key
    lines: Callable[[int, random.Random], Iterator[str]]  #: yields the lines of so many records


def data_file(folder: Path, table: Table, *, rows: int) -> Path:
    """Return the file of `table` with `rows` records and a header; write it if it is missing."""
    path = folder / f"{table.name}-{rows}.csv"
    if not path.exists():
        records = table.lines(rows, random.Random(SEED))
        _write_lines(path, itertools.chain([",".join(table.columns) + "\n"], records))
    return path


def keys_file(source: Path, count: int) -> Path:
    """Write the keys of `count` records of a data file, distinct and shuffled, with a header."""
    path = source.with_name(f"{source.stem}-keys-{count}.csv")
    if not path.exists():
        with source.open(encoding="utf-8") as file:
            header, *keys = (line.partition(",")[0] for line in file)
        sampled = random.Random(SEED).sample(keys, count)
        _write_lines(path, (f"{field}\n" for field in [header, *sampled]))
    return path


def same_file(folder: Path, name: str, value: str, count: int) -> Path:
    """Write `count` records with the single field `name`, all of the same value."""
    path = folder / f"{name}-{value}-{count}.csv"
    if not path.exists():
        _write_lines(path, (f"{field}\n" for field in [name, *[value] * count]))
    return path


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    partial.rename(path)


def _small_lines(rows: int, draw: random.Random) -> Iterator[str]:
    for number in range(rows):
        taken = (_START + timedelta(seconds=number)).strftime("%Y-%m-%d %H:%M:%S+0000")
        yield (
            f"k{number:09d},{number},{draw.gauss(18, 9):.3f},{draw.random() * 100:.2f},"
            f"sensor-{draw.randrange(5000):04d},{taken}\n"
        )


#: Six small columns, about 70 bytes a row, a partition for each row.
SMALL = Table(
    "small",
    ("id", "seq", "temperature", "humidity", "sensor", "taken"),
    "id text, seq bigint, temperature double, humidity double, sensor text, taken timestamp, "
    "PRIMARY KEY (id)",
    _small_lines,
)


def _people_lines(rows: int, draw: random.Random) -> Iterator[str]:
    for _ in range(rows):
        user_id = uuid.UUID(int=draw.getrandbits(128), version=4)
        yield f"{user_id},first {draw.randrange(1000)},last {draw.randrange(1000)}\n"


#: The table of an article about green threads.
PEOPLE = Table(
    "people",
    ("user_id", "first_name", "last_name"),
    "user_id uuid PRIMARY KEY, first_name text, last_name text",
    _people_lines,
)


def _kb1_lines(rows: int, draw: random.Random) -> Iterator[str]:
    for number in range(rows):
        # 735 bytes are 980 characters of base64, none of which is special to CSV.
        yield f"p{number:09d},{number},{base64.b64encode(draw.randbytes(735)).decode()}\n"


#: The table of the measurements that made cqlsh's COPY fast: about 1 kB a row, every
#: partition and clustering key unique.
KB1 = Table(
    "kb1",
    ("pkey", "ccol", "data"),
    "pkey text, ccol bigint, data text, PRIMARY KEY (pkey, ccol)",
    _kb1_lines,
)

#: Rows of a partition of SERIES.
_SERIES_ROWS = 1000


def _series_lines(rows: int, draw: random.Random) -> Iterator[str]:
    for number in range(rows):
        station, seq = divmod(number, _SERIES_ROWS)
        yield f"station-{station:06d},{seq},{draw.gauss(18, 9):.3f},{draw.random() * 100:.2f}\n"


#: Wide partitions.
SERIES = Table(
    "series",
    ("station", "seq", "temperature", "humidity"),
    "station text, seq int, temperature double, humidity double, PRIMARY KEY (station, seq)",
    _series_lines,
)

#: One value in so many is missing from WIDE20, except in the key.
_NULL_ONE_IN = 20


def _day(draw: random.Random) -> datetime:
    return _START + timedelta(seconds=draw.randrange(-(10**9), 10**9))


def _timeuuid(draw: random.Random) -> uuid.UUID:
    return uuid.UUID(int=draw.getrandbits(128), version=1)


#: Column, CQL type, a value as text. Floats are multiples of 1/8, which every peer reads exactly.
_WIDE: tuple[tuple[str, str, Callable[[random.Random], object]], ...] = (
    ("c_text", "text", lambda draw: f"reading no. {draw.randrange(10**6)} of station Gävle"),
    ("c_int", "int", lambda draw: draw.randrange(-(2**31), 2**31)),
    ("c_bigint", "bigint", lambda draw: draw.randrange(-(2**63), 2**63)),
    ("c_smallint", "smallint", lambda draw: draw.randrange(-(2**15), 2**15)),
    ("c_tinyint", "tinyint", lambda draw: draw.randrange(-(2**7), 2**7)),
    ("c_float", "float", lambda draw: draw.randrange(-(10**6), 10**6) / 8),
    ("c_double", "double", lambda draw: f"{draw.gauss(0, 1000):.6f}"),
    ("c_decimal", "decimal", lambda draw: f"{draw.randrange(-(10**12), 10**12) / 10**4:.4f}"),
    ("c_varint", "varint", lambda draw: draw.randrange(-(10**17), 10**17)),
    ("c_boolean", "boolean", lambda draw: draw.choice(("true", "false"))),
    ("c_timestamp", "timestamp", lambda draw: f"{_day(draw):%Y-%m-%d %H:%M:%S}+0000"),
    ("c_date", "date", lambda draw: f"{_day(draw):%Y-%m-%d}"),
    ("c_time", "time", lambda draw: f"{_day(draw):%H:%M:%S}.{draw.randrange(10**3):03d}"),
    ("c_uuid", "uuid", lambda draw: uuid.UUID(int=draw.getrandbits(128), version=4)),
    ("c_timeuuid", "timeuuid", _timeuuid),
    ("c_inet", "inet", lambda draw: ipaddress.IPv4Address(draw.getrandbits(32))),
    ("c_blob", "blob", lambda draw: "0x" + draw.randbytes(16).hex()),
    ("c_ascii", "ascii", lambda draw: f"code-{draw.randrange(10**4):04d}"),
    ("c_text2", "text", lambda draw: draw.choice(("north", "south", "east", "west"))),
)


def _wide_lines(rows: int, draw: random.Random) -> Iterator[str]:
    for number in range(rows):
        values = (
            "" if not draw.randrange(_NULL_ONE_IN) else str(value(draw)) for _, _, value in _WIDE
        )
        yield f"w{number:09d},{','.join(values)}\n"


#: 20 columns: every scalar type that all peers read alike, with some nulls.
WIDE20 = Table(
    "wide20",
    ("id", *(name for name, _, _ in _WIDE)),
    f"id text, {', '.join(f'{name} {cql_type}' for name, cql_type, _ in _WIDE)}, PRIMARY KEY (id)",
    _wide_lines,
)


def local_table(percent: int) -> Table:
    """Return a table whose file has temporal locality: `percent` of its rows follow a row of the
    same partition, the others start a new partition."""

    def lines(rows: int, draw: random.Random) -> Iterator[str]:
        partition = 0
        for number in range(rows):
            partition += draw.random() * 100 >= percent
            yield f"d{partition:09d},{number},{draw.gauss(18, 9):.3f},state-{number % 7}\n"

    return Table(
        f"local{percent:02d}",
        ("device", "seq", "reading", "state"),
        "device text, seq bigint, reading double, state text, PRIMARY KEY (device, seq)",
        lines,
    )
