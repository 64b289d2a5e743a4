"""How many values of each column were given, counted independently of the code that reads them.

A load and a verification write tables in memory by the same code. If that code lost a column or a
value, a comparison of its file with the table would agree with the loss. So a verification counts
what it was given, record by record, and compares that with what its file has. It shares with the
load how a single value is converted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ringhaul.client.columns import kind_of
from ringhaul.client.errors import CRASH, CommandCrashed

_SINGLE = (str, int, float, bytes)


class Audit:
    """Counts records and their values as they pass."""

    def __init__(self) -> None:
        self.rows, self.values = 0, Counter[str]()
        #: How values are counted in the file: each element of a cell; None: nothing was counted.
        self._count: Callable[[Any], int] | None = None

    def records(self, records: Iterable[Any]) -> Iterator[Any]:
        """Yield the records, and count them."""
        self._count = _count_array
        for record in records:
            self.rows += 1
            if isinstance(record, Mapping):
                for name, value in record.items():
                    self.values[name] += 1 if type(value) in _SINGLE else _count(value)
            yield record

    def frame(self, frame: Any) -> None:
        """Count the values of a DataFrame of pandas."""
        self._count = _count_cells
        self.rows += len(frame)
        for name, count in frame.count().items():
            self.values[str(name)] += int(count)

    def check(self, path: Path) -> None:
        """Raise `CommandCrashed` if a Parquet file has not all that was counted."""
        if self._count is None:
            return
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            rows, found = file.metadata.num_rows, Counter[str]()
            for batch in file.iter_batches():
                for name, array in zip(batch.schema.names, batch.columns, strict=True):
                    found[name] += self._count(array)
        lost = [name for name, count in self.values.items() if count > found[name]]
        if rows == self.rows and not lost:
            return
        what = f"{self.rows - rows:,} records" if rows != self.rows else f"values of {lost[0]!r}"
        raise CommandCrashed(
            f"the comparison would lack {what}: this is a defect in ringhaul.client; please "
            "report it",
            exit_code=CRASH,
        )


def _count(value: Any) -> int:
    """Return how many values there are in a cell."""
    match kind_of(type(value)):
        case "null":
            return 0
        case "dictionary":
            return sum(map(_count, value.values()))
        case "list" | "set" | "named tuple":
            return sum(map(_count, value))
        case "array":
            return int(value.size)
    return 0 if value != value else 1


def _count_array(array: Any) -> int:
    import pyarrow as pa

    if pa.types.is_struct(array.type):
        return sum(map(_count_array, array.flatten()))
    if pa.types.is_map(array.type):
        return _count_array(array.items)
    if pa.types.is_nested(array.type):
        return _count_array(array.flatten())
    return _count_cells(array)


def _count_cells(array: Any) -> int:
    return len(array) - int(array.null_count)
