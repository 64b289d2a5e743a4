"""Run one unit of a verification: the records of a source, each compared with its row in the table.

Records become rows as those of a load do, by the same code. Then, instead of written, each is asked
for by its whole primary key, at the data plane's speed (`requests.py`), and the cells that come are
compared with those that a load would have sent (`compare.py`).
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
from ringhaul.dataplane.base import Target, WriteBounds
from ringhaul.dataplane.connection import WireUnsupported
from ringhaul.load.statement import Statements
from ringhaul.load.write.pipeline import BLOCKS_KEPT_MAX
from ringhaul.records.fields import Fault
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rows import EncodedRows, RowEncoder
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.answers import Answers
from ringhaul.statements.compare import differing, shown_cells, told
from ringhaul.statements.idempotence import Effect
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats, untold
from ringhaul.statements.replies import Ints, page, row_numbers
from ringhaul.statements.requests import Requests, Values
from ringhaul.units.account import Account, UnitHooks, UnitOutcome

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

_READ = Effect("select", repeatable=True, conditional=False, single=True)
_BLOB = CqlType("blob")
#: Columns that are named in a difference besides the one that is shown.
_NAMED_MAX = 5


@dataclass(frozen=True)
class VerifyPlan:
    """What is asked for each row of a source."""

    table: TableSchema
    columns: tuple[str, ...]  #: of the rows, in their order
    static: bool = False  #: of partitions of which only static columns are given

    @classmethod
    def of(cls, table: TableSchema, source: LoadSource, *, static: bool = False) -> VerifyPlan:
        columns = [column for _, column in source.mapping]
        return cls(table, tuple(table.without_rows(columns) if static else columns), static)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which a row is found."""
        return self.table.partition_key if self.static else self.table.primary_key

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns that are compared: a row is found by the others."""
        return tuple(name for name in self.columns if name not in self.key)

    @property
    def fetched(self) -> tuple[str, ...]:
        """The columns of the answers; one of the key where none is compared."""
        return self.compared or self.table.partition_key[:1]

    @property
    def statement(self) -> str:
        """The SELECT; its markers are the key's columns."""
        names = ", ".join(map(quote_identifier, self.fetched))
        table = f"{quote_identifier(self.table.keyspace)}.{quote_identifier(self.table.table)}"
        key = " AND ".join(f"{quote_identifier(name)} = ?" for name in self.key)
        # A partition is one row then, however many it has.
        distinct = "DISTINCT " if self.static else ""
        return f"SELECT {distinct}{names} FROM {table} WHERE {key}"


def verify_statements(table: TableSchema, source: LoadSource) -> Statements:
    """What the rows of a source are asked for by."""
    alone = VerifyPlan.of(table, source, static=True)
    return Statements(
        VerifyPlan.of(table, source).statement, alone.statement if alone.columns else None
    )


def run_verify_unit(
    unit: LoadUnit,
    job: LoadJob,
    target: Target,
    bounds: WriteBounds,
    hooks: UnitHooks,
    transforms: tuple[Transform, ...] = (),
) -> UnitOutcome:
    """Compare the records of one unit with the table; `written` are the rows that are the same.

    A record with a row that is not there, or is another, is a reject. `target`: of
    `verify_statements`. Raises as `run_load_unit` does, and `ClusterError` where the server does
    not speak what the data plane needs.
    """
    source = job.sources[unit.source]
    account = Account(unit, job, RowEncoder(job, source, transforms), hooks)
    for static, blocks in groupby(account.rows(), attrgetter("static")):
        plan = VerifyPlan.of(job.table, source, static=static)
        _Verification(plan, job, target.of(static=static), bounds, account).run(blocks)
    return account.outcome()


@dataclass(eq=False)
class _Asked:
    """Rows that were asked for, by the requests from `begin` on."""

    begin: int
    rows: EncodedRows
    found: NDArray[np.bool_]  #: of each row: it is in the table
    left: int  #: without their whole answer
    #: By row, why it is not the same. They are told when all are known, in the order of the input:
    #: of several records with one key, the last comes last in an export, too.
    faults: dict[int, Fault] = field(default_factory=dict)


class _Verification:
    def __init__(
        self,
        plan: VerifyPlan,
        job: LoadJob,
        target: Target,
        bounds: WriteBounds,
        account: Account,
    ) -> None:
        self._plan, self._account = plan, account
        self._types = [plan.table.parsed_type(name) for name in plan.compared]
        self._frozen = [plan.table.type_of(n).startswith("frozen<") for n in plan.compared]
        self._places = [plan.columns.index(name) for name in plan.compared]
        self._key = [plan.columns.index(name) for name in plan.key]
        # As the bytes that they are, whatever their types.
        self._decoder = PageDecoder(plan.fetched, [_BLOB] * len(plan.fetched))
        self._asked: list[_Asked] = []
        self._next = 0
        options = ReadOptions(
            consistency=consistency_level(job.consistency),
            requests_max=bounds.requests_in_flight_max,
            retries_max=bounds.retries_max,
            request_timeout_s=bounds.request_timeout_s,
        )
        told_of = RequestHooks(
            tick=account.tick,
            throttle=account.throttle,
            on_reject=self._unreadable,
            on_doubt=untold,  # no read is
            leave=account.leave,
            takes_more=self._takes_more,
        )
        self._requests = Requests(target, _READ, len(plan.fetched), options, told_of)
        self._stats = account.stats

    def run(self, blocks: Iterable[EncodedRows]) -> None:
        """Compare these rows."""
        try:
            for answers in self._requests.answers(self._values(blocks)):
                self._take(answers)
            self._tell()
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
            self._asked.append(_Asked(begin, rows, np.zeros(count, np.bool_), count))
            bound = join_rows([rows.columns[place] for place in self._key])
            yield Values(np.arange(begin, self._next), bound, rows.keys)

    def _take(self, answers: Answers) -> None:
        """Compare the rows that came, and tell of those that will not come."""
        batch = self._decoder.decode(page(answers.pieces, len(self._plan.fetched)))
        came, finished = row_numbers(answers.pieces), answers.finished()
        for asked in self._asked:
            here = np.flatnonzero(_within(asked, came))
            if len(here):
                self._compare(asked, *self._in_order(asked, here, came, batch))
            done = finished[_within(asked, finished)] - asked.begin
            for row in done[~asked.found[done]].tolist():
                asked.faults[row] = ("missing", None, "no row has this key")
            asked.left -= len(done)
        self._tell()

    def _tell(self) -> None:
        """Tell of the rows that are not the same, as far as all before them are known."""
        while self._asked and not self._asked[0].left:
            asked = self._asked.pop(0)
            self._account.refuse(asked.rows, asked.faults)

    def _takes_more(self) -> bool:
        """Blocks are kept until all their rows are compared: no more of them than a load keeps."""
        self._tell()  # of blocks whose last rows were refused: no answer comes after those
        return len(self._asked) <= BLOCKS_KEPT_MAX

    def _in_order(
        self, asked: _Asked, here: Ints, came: Ints, batch: pa.RecordBatch
    ) -> tuple[NDArray[np.bool_], pa.RecordBatch]:
        """Which of the rows asked for came, which are at `here`, and these in their order."""
        at = here[np.argsort(came[here], kind="stable")]
        mask = np.zeros(len(asked.rows), np.bool_)
        mask[came[at] - asked.begin] = True
        return mask, batch.take(pa.array(at))

    def _compare(self, asked: _Asked, mask: NDArray[np.bool_], batch: pa.RecordBatch) -> None:
        asked.found |= mask
        rows = np.flatnonzero(mask)
        others: dict[int, list[int]] = {}  # by row, the columns in which it differs
        for i, (kind, frozen) in enumerate(zip(self._types, self._frozen, strict=True)):
            expected = self._expected(asked, i, mask)
            differs = differing(expected, batch.column(i), kind, frozen=frozen)
            for row in np.flatnonzero(differs).tolist():
                others.setdefault(row, []).append(i)
        self._stats.written += len(rows) - len(others)
        for column in sorted({columns[0] for columns in others.values()}):
            at = sorted(row for row, columns in others.items() if columns[0] == column)
            self._note(asked, column, rows, batch, {row: others[row][1:] for row in at})

    def _expected(self, asked: _Asked, column: int, mask: NDArray[np.bool_]) -> Cells:
        cells = asked.rows.columns[self._places[column]]
        return cells if mask.all() else cells.filter(mask)

    def _note(
        self,
        asked: _Asked,
        column: int,
        rows: Ints,
        batch: pa.RecordBatch,
        also: dict[int, list[int]],
    ) -> None:
        """Note rows that differ in a column first; by row, in which ones besides."""
        at = list(also)
        kind = self._types[column]
        wanted = np.zeros(len(asked.rows), np.bool_)
        wanted[rows[at]] = True
        expected = shown_cells(kind, self._expected(asked, column, wanted))
        actual = shown_cells(kind, Cells.variable(batch.column(column).take(pa.array(at))))
        for row, here, there in zip(at, actual, expected, strict=True):
            reason = told(here, there) + self._besides(also[row])
            asked.faults[int(rows[row])] = ("differs", self._plan.compared[column], reason)

    def _besides(self, columns: list[int]) -> str:
        """In words, in which columns a row differs besides."""
        if not columns:
            return ""
        names = [self._plan.compared[column] for column in columns[:_NAMED_MAX]]
        if len(columns) > _NAMED_MAX:
            names.append(f"{len(columns) - _NAMED_MAX} more")
        return f"; so do {', '.join(names)}" if len(columns) > 1 else f"; so does {names[0]}"

    def _unreadable(self, number: int, reason: str) -> None:
        """The server cannot give the row, whatever it is asked."""
        asked = next(asked for asked in reversed(self._asked) if asked.begin <= number)
        asked.left -= 1
        asked.faults[number - asked.begin] = ("read", None, reason)


def _within(asked: _Asked, numbers: Ints) -> NDArray[np.bool_]:
    """Which numbers are those of rows of a block."""
    found: NDArray[np.bool_] = (numbers >= asked.begin) & (numbers < asked.begin + len(asked.rows))
    return found
