"""What became of the records of a unit, counted. Pure."""

from __future__ import annotations

from ringhaul.errors import Terminal
from ringhaul.load.rows import EncodedRows, Part


class UnitMiscounted(Terminal):
    """What became of the records does not add up to those that were read: a defect in ringhaul."""


class Tally:
    """The records of one unit: each is loaded, dropped by a transform, filtered or rejected."""

    def __init__(self) -> None:
        self.records = self.loaded = self.dropped = self.filtered = self.rejected = 0
        self._rows = self._refused = 0
        #: Ordinals of records of which the server refused a row.
        self._refused_records: set[int] = set()

    def take(self, part: Part) -> None:
        """Count what an encoder gave; its rows are on their way to the server."""
        self.records += part.records
        self.loaded += part.loaded
        self.dropped += part.dropped
        self.filtered += part.filtered
        self.rejected += len(part.rejects)
        self._rows += sum(map(len, part.rows))

    def refuse(self, rows: EncodedRows, row: int) -> bool:
        """Count a row that the server refused; is it the first one of its record?

        The record is rejected although other rows of it may be in the table.
        """
        self._refused += 1
        ordinal = rows.block.position.ordinal + int(rows.records[row])
        if ordinal in self._refused_records:
            return False
        self._refused_records.add(ordinal)
        self.loaded -= 1
        self.rejected += 1
        return True

    def check(self, written: int, place: str) -> None:
        """Raise `UnitMiscounted` unless every record and every row is accounted for."""
        known = self.loaded + self.dropped + self.filtered + self.rejected
        if known != self.records or written + self._refused != self._rows:
            raise UnitMiscounted(
                f"{place}: {self.records} records, of which {self.loaded} loaded, {self.dropped} "
                f"dropped, {self.filtered} filtered and {self.rejected} rejected; {self._rows} "
                f"rows, of which {written} written and {self._refused} refused; please report this"
            )
