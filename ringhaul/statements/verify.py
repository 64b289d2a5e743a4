"""Run one unit of a verification: compare the records of a source with their rows in the table.

Records become rows as in a load, by the same code. Instead of being written, each row is then read
by its primary key, at the data plane's speed (`requests.py`), and the cells of the answer are
compared with the cells that a load would have sent (`compare.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cluster.connect import consistency_level
from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.cql.cells import Cells, join_rows
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.types import CqlType
from ringhaul.dataplane.base import RequestBounds, Target
from ringhaul.dataplane.connection import WireUnsupported
from ringhaul.load.statement import Statements
from ringhaul.load.write.pipeline import BLOCKS_KEPT_MAX
from ringhaul.records.account import Account, UnitHooks, UnitOutcome
from ringhaul.records.field_readers import Fault
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rows import EncodedRows, RowEncoder
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.answers import Answers
from ringhaul.statements.compare import describe_difference, differing, shorter, shown_cells
from ringhaul.statements.idempotence import READ
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats, ignore_row
from ringhaul.statements.replies import Ints, page, row_numbers
from ringhaul.statements.requests import Requests, Values

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

_BLOB = CqlType("blob")
#: Most columns named in a difference besides the column that is shown.
_NAMED_MAX = 5


@dataclass(frozen=True)
class VerifyPlan:
    """The statement and columns that read each row of a source."""

    table: TableSchema
    columns: tuple[str, ...]  #: columns of the rows, in order
    static: bool = False  #: whether the rows are partitions with static columns alone

    @classmethod
    def of(cls, table: TableSchema, source: LoadSource, *, static: bool = False) -> VerifyPlan:
        columns = source.columns
        return cls(table, tuple(table.without_rows(columns) if static else columns), static)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return self.table.partition_key if self.static else self.table.primary_key

    @property
    def compared(self) -> tuple[str, ...]:
        """The compared columns: all except the key."""
        return tuple(name for name in self.columns if name not in self.key)

    @property
    def fetched(self) -> tuple[str, ...]:
        """The columns to read: the compared columns, and one of the key where CQL needs it.

        A SELECT must name a column; and if it names only static columns, the server takes no
        condition on a clustering column.
        """
        static = {column.name for column in self.table.columns if column.static}
        if not self.compared:
            return self.table.partition_key[:1]
        if not self.static and static.issuperset(self.compared):
            return (*self.compared, *self.table.clustering_key[:1])
        return self.compared

    @property
    def statement(self) -> str:
        """The SELECT; its markers are the key's columns."""
        names = ", ".join(map(self.table.selector_of, self.fetched))
        table = f"{quote_identifier(self.table.keyspace)}.{quote_identifier(self.table.table)}"
        key = " AND ".join(f"{quote_identifier(name)} = ?" for name in self.key)
        # DISTINCT returns one row for the partition, however many it has.
        distinct = "DISTINCT " if self.static else ""
        return f"SELECT {distinct}{names} FROM {table} WHERE {key}"


def is_ttl(table: TableSchema, column: str) -> bool:
    """Return whether a compared column is the time to live of another column, which runs down."""
    return table.selector_of(column).startswith("ttl(")


def verify_statements(table: TableSchema, source: LoadSource) -> Statements:
    """Return the statements that read the rows of a source."""
    alone = VerifyPlan.of(table, source, static=True)
    return Statements(
        VerifyPlan.of(table, source).statement, alone.statement if alone.columns else None
    )


def run_verify_unit(
    unit: LoadUnit,
    job: LoadJob,
    target: Target,
    bounds: RequestBounds,
    hooks: UnitHooks,
    transforms: tuple[Transform, ...] = (),
) -> UnitOutcome:
    """Compare the records of one unit with the table; `written` counts the rows that are equal.

    A record whose row is missing or differs is rejected. `target` holds the statements of
    `verify_statements`. Raises as `run_load_unit` does, and `ClusterError` if the server does not
    support the data plane's protocol.
    """
    source = job.sources[unit.source]
    first = unit.source_ordinal
    account = Account(unit, job, RowEncoder(job, source, transforms, source_ordinal=first), hooks)
    for static, blocks in groupby(account.rows(), attrgetter("static")):
        plan = VerifyPlan.of(job.table, source, static=static)
        _Verification(plan, job, target.of(static=static), bounds, account).run(blocks)
    return account.outcome()


@dataclass(eq=False)
class _Reading:
    """Rows that are being read, by the requests from `begin` on."""

    begin: int
    rows: EncodedRows
    found: NDArray[np.bool_]  #: per row: it is in the table
    left: int  #: rows without a complete response
    #: By row, why it differs. Reported in input order once all rows are known: of several records
    #: with one key, the last record also comes last in an export.
    faults: dict[int, Fault] = field(default_factory=dict)


class _Verification:
    def __init__(
        self,
        plan: VerifyPlan,
        job: LoadJob,
        target: Target,
        bounds: RequestBounds,
        account: Account,
    ) -> None:
        self._plan, self._account = plan, account
        self._types = [plan.table.parsed_type(name) for name in plan.compared]
        self._frozen = [plan.table.type_of(n).startswith("frozen<") for n in plan.compared]
        self._runs_down = [is_ttl(plan.table, name) for name in plan.compared]
        self._places = [plan.columns.index(name) for name in plan.compared]
        self._key = [plan.columns.index(name) for name in plan.key]
        # Decode every column as raw bytes, whatever its type.
        self._decoder = PageDecoder(plan.fetched, [_BLOB] * len(plan.fetched))
        self._reading: list[_Reading] = []
        self._next = 0
        options = ReadOptions(
            consistency=consistency_level(job.consistency),
            requests_max=bounds.requests_in_flight_max,
            retries_max=bounds.retries_max,
            request_timeout_s=bounds.request_timeout_s,
        )
        request_hooks = RequestHooks(
            tick=account.tick,
            throttle=account.throttle,
            on_reject=self._unreadable,
            on_doubt=ignore_row,  # no read is in doubt
            leave=account.leave,
            takes_more=self._takes_more,
        )
        self._requests = Requests(target, READ, len(plan.fetched), options, request_hooks)
        self._stats = account.stats

    def run(self, blocks: Iterable[EncodedRows]) -> None:
        """Compare these rows."""
        try:
            for answers in self._requests.answers(self._values(blocks)):
                self._take(answers)
            self._report()
        except WireUnsupported as error:
            raise error.without_fallback("verify") from error
        finally:
            self._requests.close()
        self._add_stats(self._requests.stats)

    def _add_stats(self, stats: RequestStats) -> None:
        self._stats.retries += stats.retries
        self._stats.latencies.update(stats.latencies)
        window, before = stats.window, self._stats.window
        if window is not None and before is not None:
            window.limit_min = min(window.limit_min, before.limit_min)
            window.limit_max = max(window.limit_max, before.limit_max)
            window.shrunk += before.shrunk
        self._stats.window = window

    def _values(self, blocks: Iterable[EncodedRows]) -> Iterator[Values]:
        for rows in blocks:
            begin, count = self._next, len(rows)
            self._next += count
            self._reading.append(_Reading(begin, rows, np.zeros(count, np.bool_), count))
            bound = join_rows([rows.columns[place] for place in self._key])
            yield Values(np.arange(begin, self._next), bound, rows.keys)

    def _take(self, answers: Answers) -> None:
        """Compare the rows that came, and note the missing rows."""
        batch = self._decoder.decode(page(answers.pieces, len(self._plan.fetched)))
        came, finished = row_numbers(answers.pieces), answers.finished()
        for reading in self._reading:
            here = np.flatnonzero(_within(reading, came))
            if len(here):
                self._compare(reading, *self._in_order(reading, here, came, batch))
            done = finished[_within(reading, finished)] - reading.begin
            for row in done[~reading.found[done]].tolist():
                reading.faults[row] = ("missing", None, "no row has this key")
            reading.left -= len(done)
        self._report()

    def _report(self) -> None:
        """Report the differing rows of each leading block whose rows are all known."""
        while self._reading and not self._reading[0].left:
            reading = self._reading.pop(0)
            self._account.refuse(reading.rows, reading.faults)

    def _takes_more(self) -> bool:
        """Return whether at most as many blocks wait to be compared as a load keeps."""
        self._report()  # blocks whose last rows were refused get no further response
        return len(self._reading) <= BLOCKS_KEPT_MAX

    def _in_order(
        self, reading: _Reading, here: Ints, came: Ints, batch: pa.RecordBatch
    ) -> tuple[NDArray[np.bool_], pa.RecordBatch]:
        """Return a mask of the block's rows that came (at `here`), and these rows in order."""
        at = here[np.argsort(came[here], kind="stable")]
        mask = np.zeros(len(reading.rows), np.bool_)
        mask[came[at] - reading.begin] = True
        return mask, batch.take(pa.array(at))

    def _compare(self, reading: _Reading, mask: NDArray[np.bool_], batch: pa.RecordBatch) -> None:
        reading.found |= mask
        rows = np.flatnonzero(mask)
        others: dict[int, list[int]] = {}  # by row, the columns in which it differs
        for i, (kind, frozen) in enumerate(zip(self._types, self._frozen, strict=True)):
            expected, actual = self._expected(reading, i, mask), batch.column(i)
            if self._runs_down[i]:
                differs = shorter(expected, actual)
            else:
                differs = differing(expected, actual, kind, frozen=frozen)
            for row in np.flatnonzero(differs).tolist():
                others.setdefault(row, []).append(i)
        self._stats.written += len(rows) - len(others)
        for column in sorted({columns[0] for columns in others.values()}):
            at = sorted(row for row, columns in others.items() if columns[0] == column)
            self._note(reading, column, rows, batch, {row: others[row][1:] for row in at})

    def _expected(self, reading: _Reading, column: int, mask: NDArray[np.bool_]) -> Cells:
        cells = reading.rows.columns[self._places[column]]
        return cells if mask.all() else cells.filter(mask)

    def _note(
        self,
        reading: _Reading,
        column: int,
        rows: Ints,
        batch: pa.RecordBatch,
        also: dict[int, list[int]],
    ) -> None:
        """Note rows that differ first in a column; `also`: by row, other columns that differ."""
        at = list(also)
        kind = self._types[column]
        wanted = np.zeros(len(reading.rows), np.bool_)
        wanted[rows[at]] = True
        expected = shown_cells(kind, self._expected(reading, column, wanted))
        actual = shown_cells(kind, Cells.variable(batch.column(column).take(pa.array(at))))
        for row, here, there in zip(at, actual, expected, strict=True):
            reason = describe_difference(here, there) + self._besides(also[row])
            reading.faults[int(rows[row])] = ("differs", self._plan.compared[column], reason)

    def _besides(self, columns: list[int]) -> str:
        """Return text that names the other columns in which a row differs."""
        if not columns:
            return ""
        names = [self._plan.compared[column] for column in columns[:_NAMED_MAX]]
        if len(columns) > _NAMED_MAX:
            names.append(f"{len(columns) - _NAMED_MAX} more")
        return f"; so do {', '.join(names)}" if len(columns) > 1 else f"; so does {names[0]}"

    def _unreadable(self, number: int, reason: str) -> None:
        """Note a row that the server cannot read."""
        reading = next(reading for reading in reversed(self._reading) if reading.begin <= number)
        reading.left -= 1
        reading.faults[number - reading.begin] = ("read", None, reason)


def _within(reading: _Reading, numbers: Ints) -> NDArray[np.bool_]:
    """Return a mask of the numbers that belong to rows of a block."""
    found: NDArray[np.bool_] = (numbers >= reading.begin) & (
        numbers < reading.begin + len(reading.rows)
    )
    return found
