"""Encode a block of records as columns of CQL cells, and reject records that cannot become rows.

Everything here is per column. A record leaves the block at its first fault (a field count, a
value, its key) and becomes a `Reject`; the others continue together. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.breadcrumb import Loss
from ringhaul.cluster.schema import appends
from ringhaul.cql.cells import Cells, bigint_cells, join_rows, routing_keys
from ringhaul.option_names import input_option
from ringhaul.records.blanks import TEXTS
from ringhaul.records.field_readers import AnyBlock, Fault, field_reader
from ringhaul.records.fields import TableColumns
from ringhaul.records.job import Input, LoadSource
from ringhaul.records.rejects import KEPT_BYTES_MAX, Reject
from ringhaul.records.shape import Shaper

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

#: Cassandra stores a partition key's length in 16 bits.
PARTITION_KEY_BYTES_MAX = 65535


@dataclass(frozen=True)
class EncodedRows:
    """Rows of one block, ready to be bound: one `Cells` per column, then the timestamp, and the TTL
    if rows have their own."""

    columns: list[Cells]
    keys: pa.BinaryArray  #: the routing key of each row
    records: npt.NDArray[np.int64]  #: index in the block of each row's record
    block: AnyBlock
    #: Place in `columns` of the timestamp, for rows that must not be written twice at one time;
    #: None: a repeated write changes nothing.
    timestamp_at: int | None = None
    #: Whether these are static columns of partitions without a row: values for another statement
    #: (`Statements.statics`), with the columns of `TableSchema.without_rows`.
    static: bool = False
    #: Whether rows that need later times (`timestamp_at`) are rejected instead of sent again.
    exact: bool = False

    def __len__(self) -> int:
        return len(self.records)

    def later(self, by_us: int) -> EncodedRows:
        """Return the rows with later timestamps, if they need them (`timestamp_at`)."""
        if self.timestamp_at is None or not by_us:
            return self
        columns = list(self.columns)
        timestamps = columns[self.timestamp_at].fixed_values
        assert timestamps is not None  # every row has one
        # Stay within int64: an overflow would wrap around to the least value.
        latest = np.minimum(timestamps.astype(np.int64), 2**63 - 1 - by_us)
        columns[self.timestamp_at] = bigint_cells(latest + by_us)
        return replace(self, columns=columns)

    def joined(self) -> pa.BinaryArray:
        """Return each row's bound values as they appear in a request."""
        return join_rows(self.columns)


class Part(NamedTuple):
    """What some records of a block became: they are loaded, dropped, filtered or rejected."""

    rows: list[EncodedRows]  #: all rows of a record are in one part
    rejects: list[Reject]
    records: int  #: records that the job covers
    loaded: int  #: records that became rows
    dropped: int = 0  #: left out by a transform
    filtered: int = 0  #: left out by the condition


def _no_tick() -> None:
    pass


class RowEncoder:
    """Encodes the blocks of one source of one job."""

    def __init__(
        self,
        job: Input,
        source: LoadSource,
        transforms: tuple[Transform, ...] = (),
        later_us: int = 0,
        source_ordinal: int = 0,
    ) -> None:
        """`transforms`: the transforms that `job` names. `later_us`: see `EncodedRows.later`.
        `source_ordinal`: see `LoadUnit`. Raises `UsageError` for the job's condition."""
        self._job = job
        self._first = source_ordinal + job.ordinal_first
        #: The job covers no record from this ordinal on.
        self.ordinal_end = source_ordinal + job.ordinal_end
        self._source = source
        self._fields = field_reader(job, source)
        self._table = TableColumns(job, source)
        self._columns = self._table.names
        self._key = [self._columns.index(name) for name in job.table.partition_key]
        self._primary = [self._columns.index(name) for name in job.table.primary_key]
        alone = job.table.without_rows(self._columns)
        #: Places of the columns of partitions without rows; empty: there are no such partitions.
        self._alone = [self._columns.index(name) for name in alone]
        self._alone_appends = self._appending(alone)
        self._later_us = 0 if job.times.exact else later_us
        self._shaper = None
        if job.transforms or job.where:
            self._shaper = Shaper(job, source, self._fields, self._table, transforms)

    def parts(self, block: AnyBlock, tick: Callable[[], None] = _no_tick) -> Iterator[Part]:
        """Yield what becomes of the records of a block that the job covers, each record once.

        Calls `tick` between calls of transforms. Raises `TransformError`.
        """
        if self._shaper is None or block.defect is not None:
            rows, rejects, count = self.encode(block)
            loaded = sum(map(len, rows))
            if self._source.splits_rows:  # a record may be several rows
                loaded = _distinct([found.records for found in rows])
            yield Part(rows, rejects, count, loaded)
            return
        covered = self._covered(block)
        covered_count = int(np.count_nonzero(covered))
        if not covered_count:
            return
        parsed = self._fields.parse(block, covered)
        for shaped in self._shaper.shape(parsed, covered_count, tick):
            faults = shaped.faults
            for cells, records in shaped.rows:
                self._check_keys(cells, records, faults)
            found = [
                rows
                for cells, records in shaped.rows
                for rows in self._rows(block, cells, records, faults)
            ]
            yield Part(
                found,
                self.rejects(block, faults),
                shaped.records,
                _distinct([rows.records for rows in found]),
                shaped.dropped,
                shaped.filtered,
            )

    def left_out(self, block: AnyBlock, loss: Loss) -> Iterator[Part]:
        """Yield the reject for a block of one record that cost a process, if the job covers it."""
        if self._covered(block).any():
            yield Part([], [self.reject(block, 0, *_reject_of(loss))], 1, 0)

    def encode(self, block: AnyBlock) -> tuple[list[EncodedRows], list[Reject], int]:
        """Return rows to write, rejects, and how many records of the block the job covers.

        Rows and rejects together are exactly those records.
        """
        covered = self._covered(block)
        covered_count = int(np.count_nonzero(covered))
        if not covered_count:
            return [], [], 0
        if block.defect is not None:
            return [], [self.reject(block, 0, "split", None, block.defect)], 1
        columns, records, faults = self._fields.parse(block, covered)
        encode = self._fields.encode
        cells = [
            self._table.encode(encode, place, values, records, faults)
            for place, values in enumerate(self._table.of_read(columns))
        ]
        self._check_keys(cells, records, faults)
        rows = self._rows(block, cells, records, faults)
        return rows, self.rejects(block, faults), covered_count

    def reject(
        self, block: AnyBlock, record: int, stage: str, column: str | None, reason: str
    ) -> Reject:
        """Return the reject of one record of a block."""
        return self.rejects(block, {record: (stage, column, reason)})[0]

    def _covered(self, block: AnyBlock) -> npt.NDArray[np.bool_]:
        """Return which records of the block the job covers: it may have limits."""
        ordinals = block.position.ordinal + np.arange(block.records_count, dtype=np.int64)
        return (ordinals >= self._first) & (ordinals < self.ordinal_end)

    def rejects(self, block: AnyBlock, faults: Mapping[int, Fault]) -> list[Reject]:
        """Return the rejects of a block, from faults by record, in the records' order."""
        records = sorted(faults)
        rejects = []
        for record, line in zip(records, self._fields.lines(block, records), strict=True):
            stage, column, reason = faults[record]
            kept = self._fields.kept(block, record)
            whole = kept.data is not None and kept.length <= KEPT_BYTES_MAX
            rejects.append(
                Reject(
                    file=self._source.file.path,
                    offset=kept.offset,
                    length=kept.length,
                    line=line,
                    stage=stage,
                    column=column,
                    reason=reason,
                    data=kept.data() if kept.data is not None and whole else None,
                )
            )
        return rejects

    def _check_keys(
        self,
        cells: list[Cells],
        records: npt.NDArray[np.int64],
        faults: dict[int, Fault],
    ) -> None:
        """Note nulls in the primary key, and partition keys too long for Cassandra."""
        alone = self._without_row(cells)
        for position in self._primary:
            column = self._columns[position]
            null = cells[position].lengths < 0
            if position not in self._key and alone is not None:
                null &= ~alone
            reason = "null in the primary key; it needs a value"
            if self._job.table.parsed_type(column).name in TEXTS and len(self._primary) > 1:
                option = input_option("empty")
                reason += f" ({option} {column}=text makes an empty field of CSV the empty text)"
            for row in np.flatnonzero(null):
                faults.setdefault(int(records[row]), ("key", column, reason))
        if not self._key:
            return  # values of a statement, not rows of a table
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
        block: AnyBlock,
        cells: list[Cells],
        records: npt.NDArray[np.int64],
        faults: dict[int, Fault],
    ) -> list[EncodedRows]:
        if faults:
            good = ~np.isin(records, np.fromiter(faults, dtype=np.int64, count=len(faults)))
            records, cells = records[good], [column.filter(good) for column in cells]
        alone = self._without_row(cells)
        if alone is None or not alone.any():
            return self._of_statement(block, cells, records)
        parts = ((~alone, False), (alone, True))
        return [
            rows
            for chosen, static in parts
            for rows in self._of_statement(
                block, [column.filter(chosen) for column in cells], records[chosen], static=static
            )
        ]

    def _of_statement(
        self,
        block: AnyBlock,
        cells: list[Cells],
        records: npt.NDArray[np.int64],
        *,
        static: bool = False,
    ) -> list[EncodedRows]:
        if not len(records):
            return []
        timestamps = self._job.times.base_us + block.position.ordinal + records
        keys = self._routing_keys(cells, len(records))
        found = []
        for rows, bound, appending in self._table.statements(cells, timestamps):
            columns_count = len(self._columns)
            if static:
                bound = [*(bound[place] for place in self._alone), *bound[columns_count:]]
                columns_count, appending = len(self._alone), appending and self._alone_appends
            every = bool(rows.all())
            encoded = EncodedRows(
                columns=bound,
                keys=keys if every else keys.filter(pa.array(rows)),
                records=records if every else records[rows],
                block=block,
                timestamp_at=columns_count if appending else None,
                static=static,
                exact=self._job.times.exact,
            )
            found.append(encoded.later(self._later_us))
        return found

    def _without_row(self, cells: list[Cells]) -> npt.NDArray[np.bool_] | None:
        """Return which records hold a partition's static columns and no row.

        An unload writes such a partition without clustering columns. None: no static columns.
        """
        if not self._alone:
            return None
        given = [cells[place].lengths >= 0 for place in range(len(self._columns))]
        rest = [given[place] for place in range(len(given)) if place not in self._alone]
        static = [given[place] for place in self._alone if place not in self._key]
        found: npt.NDArray[np.bool_] = np.any(static, axis=0) & ~np.any(rest, axis=0)
        return found

    def _appending(self, columns: Iterable[str]) -> bool:
        return any(appends(self._job.table.type_of(name)) for name in columns)

    def _routing_keys(self, cells: list[Cells], rows_count: int) -> pa.BinaryArray:
        if not self._key:
            return pa.array([b""] * rows_count, pa.binary())
        return routing_keys([cells[position] for position in self._key])


def _reject_of(loss: Loss) -> tuple[str, str | None, str]:
    how = "this record killed its process"
    if loss.stalled_s:
        how = f"this record kept a process busy for {loss.stalled_s} s without progress"
    stage = "transform" if loss.stage == "transform" else "convert"
    return stage, loss.column or None, f"{how}, among others and alone"


def _distinct(parts: list[npt.NDArray[np.int64]]) -> int:
    """Return the number of different records."""
    return len(np.unique(np.concatenate(parts))) if parts else 0


def bound_values(rows: EncodedRows, row: int) -> list[bytes | None]:
    """Return the values of one row; None: null or unset."""
    chosen = np.zeros(len(rows), np.bool_)
    chosen[row] = True
    cells = [column.filter(chosen) for column in rows.columns]
    return [
        None if int(one.lengths[0]) < 0 else one.values.cast(pa.binary())[0].as_py()
        for one in cells
    ]
