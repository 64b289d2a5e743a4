"""The files that are loaded: generated once, the same everywhere, kept in the cache folder."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

SEED = 20260101
_START = datetime(2026, 1, 1, tzinfo=UTC)


class Table(NamedTuple):
    """A table, and how a line of its file is made."""

    name: str
    columns: tuple[str, ...]
    schema: str  #: column definitions and primary key
    line: Callable[[int, random.Random], str]


def _small_line(number: int, draw: random.Random) -> str:
    taken = (_START + timedelta(seconds=number)).strftime("%Y-%m-%d %H:%M:%S+0000")
    return (
        f"k{number:09d},{number},{draw.gauss(18, 9):.3f},{draw.random() * 100:.2f},"
        f"sensor-{draw.randrange(5000):04d},{taken}\n"
    )


#: Six small columns, about 70 bytes a row, a partition for each row.
SMALL = Table(
    "small",
    ("id", "seq", "temperature", "humidity", "sensor", "taken"),
    "id text, seq bigint, temperature double, humidity double, sensor text, taken timestamp, "
    "PRIMARY KEY (id)",
    _small_line,
)


def data_file(folder: Path, table: Table, *, rows: int) -> Path:
    """The file of `table` with `rows` records and a header, written when it is not there."""
    path = folder / f"{table.name}-{rows}.csv"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draw = random.Random(SEED)
        partial = path.with_suffix(".part")
        with partial.open("w", encoding="utf-8") as file:
            file.write(",".join(table.columns) + "\n")
            for number in range(rows):
                file.write(table.line(number, draw))
        partial.rename(path)
    return path
