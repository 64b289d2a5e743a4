"""The rows of a load for fault injection, read from SSTables without a node."""

from __future__ import annotations

from tests.chaos.rig import Row
from tests.sstable_reader import partitions_of

#: Of the columns, in bytes; 0: of any length.
WIDTHS = {"name": 0, "amount": 8, "note": 0}


def rows_in(files: dict[str, bytes], first_us: int) -> dict[int, Row]:
    """Return the rows of one SSTable by their key; each must have the write time of its ordinal.

    `files`: component -> content.
    """
    found: dict[int, Row] = {}
    for partition in partitions_of(files, WIDTHS):
        (row,) = partition.rows
        key = int.from_bytes(partition.key, "big", signed=True)
        assert row.time_us == first_us + key
        cells = {name: cell.value for name, cell in row.cells.items() if cell is not None}
        found[key] = (
            (cells["name"] or b"").decode(),
            int.from_bytes(cells["amount"] or b"", "big", signed=True),
            (cells["note"] or b"").decode() if "note" in cells else None,
        )
    return found
