"""A block of records -> columns of CQL cells, and the records that cannot become rows.

Everything here is per column. A record leaves the block at its first fault (a field count, a
value, its key) and becomes a `Reject`; the others go on together. Pure: no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells, join_rows, routing_keys
from ringhaul.cql.text import encode_text
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import Block, record_position
from ringhaul.load.job import LoadJob, LoadSource
from ringhaul.load.rejects import KEPT_BYTES_MAX, Reject

#: Cassandra stores a partition key's length in 16 bits.
PARTITION_KEY_BYTES_MAX = 65535

#: (stage, column if one is at fault, reason) of a record that cannot become a row.
Fault = tuple[str, str | None, str]


@dataclass(frozen=True)
class EncodedRows:
    """Rows of one block, ready to be bound: one `Cells` per column, the timestamp last."""

    columns: list[Cells]
    keys: pa.BinaryArray  #: the routing key of each row
    records: npt.NDArray[np.int64]  #: the record of each row, as an index into the block
    block: Block

    def __len__(self) -> int:
        return len(self.records)

    def joined(self) -> pa.BinaryArray:
        """Each row's bound values as they stand in a request."""
        return join_rows(self.columns)


class RowEncoder:
    """Encodes the blocks of one source of one job."""

    def __init__(self, job: LoadJob, source: LoadSource) -> None:
        self._job = job
        self._source = source
        self._columns = [column for _, column in source.mapping]
        self._wanted = [field for field, _ in source.mapping]
        self._types = [job.table.type_of(column) for column in self._columns]
        self._key = [self._columns.index(name) for name in job.table.partition_key]
        self._primary = [self._columns.index(name) for name in job.table.primary_key]
        self._null_length = UNSET_LENGTH if job.nulls == "unset" else NULL_LENGTH

    def encode(self, block: Block) -> tuple[EncodedRows | None, list[Reject], int]:
        """Rows to write, rejects, and how many records of the block the job asked for.

        Rows and rejects together are exactly those records.
        """
        job = self._job
        ordinals = block.position.ordinal + np.arange(len(block.starts), dtype=np.int64)
        asked = (ordinals >= job.ordinal_first) & (ordinals < job.ordinal_end)
        asked_count = int(np.count_nonzero(asked))
        if not asked_count:
            return None, [], 0
        if block.defect is not None:
            return None, [self.reject(block, 0, "split", None, block.defect)], 1
        text = read_block(block, job.dialect, self._source.fields, self._wanted)
        faults: dict[int, Fault] = {}
        for fault in text.rejects:
            if asked[fault.record]:
                faults.setdefault(fault.record, (fault.stage, fault.column, fault.reason))
        records, cells = text.records, []
        arrays = text.columns
        if asked_count < len(asked):
            keep = asked[records]
            records, arrays = records[keep], [a.filter(pa.array(keep)) for a in arrays]
        for position, values in enumerate(arrays):
            column, null_length = self._columns[position], self._null_length
            if position in self._primary:
                null_length = NULL_LENGTH
            encoded, bad = encode_text(
                self._types[position], values, job.text, null_length=null_length
            )
            cells.append(encoded)
            for value in bad:
                faults.setdefault(int(records[value.row]), ("cast", column, value.reason))
        self._check_keys(cells, records, faults)
        rows = self._rows(block, cells, records, faults)
        return rows, self._rejects(block, faults), asked_count

    def reject(
        self, block: Block, record: int, stage: str, column: str | None, reason: str
    ) -> Reject:
        """The reject of one record of a block."""
        line = record_position(block, record).line
        return self._reject(block, record, line, (stage, column, reason))

    def _rejects(self, block: Block, faults: dict[int, Fault]) -> list[Reject]:
        """The rejects of a block in their order. Lines are counted once over the block: counted
        anew for each, a block of bad records would take minutes."""
        rejects = []
        line, counted_bytes = block.position.line, 0
        for record, fault in sorted(faults.items()):
            start = int(block.starts[record])
            line += count_line_ends(block.data, counted_bytes, start)
            counted_bytes = start
            rejects.append(self._reject(block, record, line, fault))
        return rejects

    def _reject(self, block: Block, record: int, line: int, fault: Fault) -> Reject:
        start, end = int(block.starts[record]), int(block.ends[record])
        whole = block.size_bytes == len(block.data)
        stage, column, reason = fault
        return Reject(
            file=self._source.file.path,
            offset=block.position.offset_bytes + start,
            length=end - start if whole else block.size_bytes,
            line=line,
            stage=stage,
            column=column,
            reason=reason,
            data=bytes(block.data[start:end]) if whole and end - start <= KEPT_BYTES_MAX else None,
        )

    def _check_keys(
        self,
        cells: list[Cells],
        records: npt.NDArray[np.int64],
        faults: dict[int, Fault],
    ) -> None:
        """Nulls in the primary key, and partition keys that Cassandra refuses by length."""
        for position in self._primary:
            column = self._columns[position]
            for row in np.flatnonzero(cells[position].lengths < 0):
                faults.setdefault(
                    int(records[row]), ("key", column, "null in the primary key; it needs a value")
                )
        lengths = [cells[position].lengths.astype(np.int64) for position in self._key]
        if len(lengths) == 1:
            for row in np.flatnonzero(lengths[0] == 0):
                reason = "empty partition key; Cassandra stores no row under an empty key"
                faults.setdefault(int(records[row]), ("key", self._columns[self._key[0]], reason))
            total = lengths[0]
        else:
            # Each component of a composite key is stored with 2 bytes of length and 1 of end.
            total = np.sum([np.maximum(length, 0) + 3 for length in lengths], axis=0)
        for row in np.flatnonzero(total > PARTITION_KEY_BYTES_MAX):
            reason = f"partition key of {total[row]} bytes; at most {PARTITION_KEY_BYTES_MAX} fit"
            faults.setdefault(int(records[row]), ("key", self._columns[self._key[0]], reason))

    def _rows(
        self,
        block: Block,
        cells: list[Cells],
        records: npt.NDArray[np.int64],
        faults: dict[int, Fault],
    ) -> EncodedRows | None:
        if faults:
            good = ~np.isin(records, np.fromiter(faults, dtype=np.int64, count=len(faults)))
            records, cells = records[good], [column.filter(good) for column in cells]
        if not len(records):
            return None
        timestamps = self._job.base_us + block.position.ordinal + records
        return EncodedRows(
            columns=[*cells, Cells.fixed(timestamps.astype(">i8"))],
            keys=routing_keys([cells[position] for position in self._key]),
            records=records,
            block=block,
        )
