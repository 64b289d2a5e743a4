"""Dictionaries become tables of Arrow, some thousand at a time. Uses pyarrow.

Each table has the columns of all keys of its records, in the order in which they occur first. A
later table may have more, or other types: `growing` joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from ringhaul.client.columns import column
from ringhaul.client.errors import UsageError

#: Records of the first table, and of any.
FIRST_ROWS, ROWS_MAX = 256, 16_384
#: How many times as many records as one table the next table may have.
GROWTH = 8
#: Bytes of a table, about.
TABLE_BYTES = 16 << 20
#: Different keys of all records.
COLUMNS_MAX = 10_000


def record_tables(records: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of the records, in order. Raises `UsageError` for a record that is no
    dictionary, and for values that cannot be in one column."""
    import pyarrow as pa

    left, first, size = iter(records), 1, FIRST_ROWS
    names: dict[str, None] = {}
    empty = 0  #: Records without a key, as long as no name of a column is known.
    while rows := list(islice(left, size)):
        _check(rows, first)
        found = dict.fromkeys(chain.from_iterable(rows))
        _check_names(found, names, rows, first)
        names |= found
        if names:
            for start in range(0, empty, ROWS_MAX):
                count = min(ROWS_MAX, empty - start)
                yield pa.table({next(iter(names)): pa.nulls(count)})
            empty = 0
            # Records without any key are still records.
            wanted = found or dict.fromkeys(islice(names, 1))
            table = pa.Table.from_arrays(
                [column([row.get(name) for row in rows], name, first) for name in wanted],
                names=list(wanted),
            )
            yield table
            per_row = max(table.nbytes / len(rows), 1.0)
            size = int(max(1, min(ROWS_MAX, GROWTH * len(rows), TABLE_BYTES / per_row)))
        else:
            empty += len(rows)
        first += len(rows)
    if not names:
        raise UsageError("no record has a key: give dictionaries with the names of columns")


def _check(rows: list[Any], first: int) -> None:
    if all(issubclass(each, Mapping) for each in set(map(type, rows))):
        return
    place, row = next((n, row) for n, row in enumerate(rows) if not isinstance(row, Mapping))
    what = type(row).__name__
    if hasattr(row, "_asdict"):
        remedy = f"give ._asdict() of each {what}"
    elif hasattr(type(row), "__dataclass_fields__"):
        remedy = f"give dataclasses.asdict of each {what}"
    else:
        remedy = "give dictionaries only"
    raise UsageError(f"record {first + place:,} is of the type {what}, not a dictionary: {remedy}")


def _check_names(
    found: Mapping[Any, None], known: Mapping[str, None], rows: list[Any], first: int
) -> None:
    """Raise `UsageError` for keys that are no names of columns, and for far too many."""
    if strange := [name for name in found if not isinstance(name, str)]:
        place = next(n for n, row in enumerate(rows) if strange[0] in row)
        raise UsageError(
            f"record {first + place:,} has the key {strange[0]!r}: keys are names of columns, and "
            "must be texts"
        )
    if len(known) + sum(name not in known for name in found) > COLUMNS_MAX:
        raise UsageError(
            f"the records up to {first + len(rows) - 1:,} have more than {COLUMNS_MAX:,} different "
            "keys: each is the name of a column"
        )
