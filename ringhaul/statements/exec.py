"""`exec`: run one prepared statement over any number of rows of values; results are columns.

The statement is a SELECT, INSERT, UPDATE, DELETE or batch. Rows of values go to their replicas if
the partition key is bound in full, else to any node. Results come as they arrive, or in the order
of the values; then a block's results wait for the results of earlier blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from ringhaul.cluster.markers import keyspace_of, markers_of, result_of
from ringhaul.cluster.prepared import Marked
from ringhaul.cql.cells import NULL_LENGTH, Cells, join_rows, routing_keys
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.nested import encode_column, loadable
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType
from ringhaul.dataplane.base import RequestFailed, Target
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.errors import UsageError
from ringhaul.statements.answers import Answers
from ringhaul.statements.idempotence import Effect, effect_of
from ringhaul.statements.in_order import Blocks, InOrder, Rows
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats
from ringhaul.statements.replies import Ints, page, row_numbers
from ringhaul.statements.requests import Requests, Values

#: The result of a conditional statement.
APPLIED = Marked(("[applied]",), (CqlType("boolean"),))
#: A number above all row numbers.
NUMBERS_END = 2**63 - 1


class Bound(NamedTuple):
    """Rows of values: a column for each marker, in the statement's order."""

    #: Row numbers, ascending within and across blocks.
    numbers: Ints
    columns: Sequence[Cells]


@dataclass(frozen=True)
class Statement:
    """A prepared statement, and what is known about it."""

    prepared: PreparedStatement
    effect: Effect
    markers: Marked
    result: Marked  #: columns of the returned rows; empty for a plain write
    keyspace: str | None  #: whose replicas own a row; None: unknown, so any node is used

    @classmethod
    def prepare(cls, session: Session, text: str) -> Statement:
        """Prepare `text`. Raises the driver's errors, and `UsageError` for what exec cannot run."""
        effect = effect_of(text)
        prepared = session.prepare(text)
        result = APPLIED if effect.conditional else result_of(prepared)
        routed = prepared.routing_key_indexes
        keyspace = keyspace_of(prepared) if routed else None
        return cls(prepared, effect, markers_of(prepared), result, keyspace)

    def routing_keys(self, columns: Sequence[Cells]) -> pa.BinaryArray | None:
        """Return the routing key of each row; None if the statement does not tell."""
        if self.keyspace is None:
            return None
        return routing_keys([columns[i] for i in self.prepared.routing_key_indexes])


class Exec:
    """Runs a statement over one unit's rows of values."""

    def __init__(
        self,
        session: Session,
        plane: ConnectionPool,
        statement: Statement,
        options: ReadOptions,
        hooks: RequestHooks,
    ) -> None:
        self._statement, self._hooks = statement, hooks
        self._blocks, self._held = Blocks(), InOrder()
        self._settled: list[int] = []  # rejected or doubtful rows whose block does not know yet
        self._decoder = None
        if statement.result.names:
            self._decoder = PageDecoder(statement.result.names, statement.result.types)
        known = 0 if statement.effect.conditional else len(statement.result.names)
        request_hooks = RequestHooks(
            tick=hooks.tick,
            throttle=hooks.throttle,
            on_reject=self._settling(hooks.on_reject),
            on_doubt=self._settling(hooks.on_doubt),
            leave=hooks.leave,
            on_not_applied=hooks.on_not_applied,
            place=hooks.place,
        )
        keyspace = statement.keyspace or "system"
        target = Target(session, plane, statement.prepared, keyspace)
        self._requests = Requests(target, statement.effect, known, options, request_hooks)

    @property
    def schema(self) -> pa.Schema | None:
        """Schema of the batches of rows; None for a statement without result rows."""
        return None if self._decoder is None else self._decoder.schema

    @property
    def stats(self) -> RequestStats:
        return self._requests.stats

    def rows(self, blocks: Iterable[Bound], *, ordered: bool) -> Iterator[Rows]:
        """Run the statement with all values; yield the rows of the responses.

        `ordered`: by the numbers of the values. Then the rows of some blocks are held back, so
        blocks should be small if a response has many rows. A statement that is not idempotent ends
        with every row accounted for, whatever happens: rows that could not be sent are rejected.
        """
        rest = iter(blocks)
        try:
            for answers in self._requests.answers(map(self._values, rest)):
                yield from self._rows(answers, ordered)
            yield from self._rows(Answers([]), ordered)
        except RequestFailed as error:
            if self._statement.effect.repeatable:
                raise
            # Answered rows are done, and will not be requested again.
            for answers in self._requests.gathered():
                yield from self._rows(answers, ordered)
            held = self._held.up_to(NUMBERS_END)
            if held is not None:
                yield held
            unfinished = self._requests.unfinished()
            for number in unfinished.sent.tolist():
                self.stats.in_doubt += 1
                self._hooks.on_doubt(number, str(error))
            unsent = [unfinished.unsent, *(bound.numbers for bound in rest)]
            for number in np.concatenate(unsent).tolist():
                self.stats.rejected += 1
                self._hooks.on_reject(number, f"not sent: {error}")

    def close(self) -> None:
        """Close connections whose late responses would reach the next unit."""
        self._requests.close()

    def _values(self, block: Bound) -> Values:
        numbers = block.numbers
        if len(numbers):
            self._blocks.add(int(numbers[0]), int(numbers[-1]) + 1, len(numbers))
        joined = (
            join_rows(block.columns) if block.columns else pa.array([b""] * len(numbers), "binary")
        )
        return Values(numbers, joined, self._statement.routing_keys(block.columns))

    def _rows(self, answers: Answers, ordered: bool) -> Iterator[Rows]:
        if self._decoder is not None and answers.pieces:
            columns = len(self._statement.result.names)
            batch = self._decoder.decode(page(answers.pieces, columns))
            rows = Rows(row_numbers(answers.pieces), batch)
            if ordered:
                self._held.add(rows)
            elif len(rows.numbers):
                yield rows
        settled, self._settled = self._settled, []
        if ordered:
            finished = np.concatenate([answers.finished(), np.array(settled, np.int64)])
            end = self._blocks.settle(finished)
            ready = None if end is None else self._held.up_to(end)
            if ready is not None:
                yield ready

    def _settling(self, tell: Callable[[int, str], None]) -> Callable[[int, str], None]:
        """Wrap a callback so that it also marks the row as done."""

        def settle(number: int, reason: str) -> None:
            self._settled.append(number)
            tell(number, reason)

        return settle


class BoundTexts(NamedTuple):
    """Rows of values parsed from texts."""

    bound: Bound
    #: (row's number, marker, reason) of each row that is left out.
    bad: list[tuple[int, str, str]]


def bind_texts(
    markers: Marked, numbers: Ints, columns: Sequence[pa.BinaryArray], text: TextFormat
) -> BoundTexts:
    """Return values for columns of texts in the markers' order; an Arrow null is a null.

    Texts have the form of CSV fields in a load; nested types are JSON. Raises `UsageError` for a
    marker whose type cannot be read from text.
    """
    cells: list[Cells] = []
    bad: dict[int, tuple[int, str, str]] = {}
    for name, kind, values in zip(markers.names, markers.types, columns, strict=True):
        if kind.name == "counter":
            kind = CqlType("bigint")
        if not loadable(kind):
            raise UsageError(f"marker {name!r} is a {kind.name}, which cannot be read from text")
        encoded = encode_column(kind, values.cast(pa.binary()), text, null_length=NULL_LENGTH)
        cells.append(encoded.cells)
        for row, fault in encoded.faults.items():
            bad.setdefault(row, (int(numbers[row]), name, fault.words(name)))
    if not bad:
        return BoundTexts(Bound(numbers, cells), [])
    good = np.ones(len(numbers), np.bool_)
    good[list(bad)] = False
    bound = Bound(numbers[good], [column.filter(good) for column in cells])
    return BoundTexts(bound, [bad[row] for row in sorted(bad)])
