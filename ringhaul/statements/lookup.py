"""`lookup`: read the rows of many keys, as columns.

Keys of one partition column are requested in lists, `WHERE pk IN ?`: the keys of a list share their
replicas, and the server answers a list for little more than a single key. Any other key (of several
columns, with clustering columns, or with decimals or varints in it) is a separate statement. The
rows of a list are matched to their keys by the bytes of the first column; a key that was given
twice is requested once and answered twice.

Lists are only used while nothing fails. If the server refuses a list, its keys are requested one by
one, and the key at fault is rejected. If the rows of a list exceed one page, its remaining keys are
also requested one by one. So no error can come after a list's first page, when it would be unclear
which of its rows were handed out already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from cassandra.cluster import Session
from cassandra.query import PreparedStatement
from numpy.typing import NDArray

from ringhaul.cluster.schema import TableSchema, no_column, quote_identifier
from ringhaul.cql.cells import Cells, join_rows, routing_keys
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.types import CqlType
from ringhaul.dataplane.base import Target
from ringhaul.dataplane.pacing import Leave
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.errors import UsageError
from ringhaul.statements.answers import Answers
from ringhaul.statements.exec import Bound
from ringhaul.statements.idempotence import READ
from ringhaul.statements.in_order import InOrder, Rows
from ringhaul.statements.key_block import KeyBlock
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats
from ringhaul.statements.replies import Ints, Piece, match_keys, page
from ringhaul.statements.requests import Requests, Values

#: Most unanswered lists on one connection: more would only wait in the server.
LISTS_MAX = 32


@dataclass(frozen=True, kw_only=True)
class LookupHooks(RequestHooks):
    """Hooks as for requests, with numbers of keys. Reads are never in doubt."""

    #: Called with the numbers of keys without a row, as they become known.
    on_missing: Callable[[Ints], None]


@dataclass(frozen=True)
class LookupPlan:
    """The table, key and columns of a lookup."""

    table: TableSchema
    #: The key's columns: the complete partition key, and all or the first clustering columns.
    key: tuple[str, ...]
    columns: tuple[str, ...]  #: the requested columns

    @classmethod
    def of(
        cls, table: TableSchema, key: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> LookupPlan:
        """`key`: columns, empty: the partition key. `columns`: empty: all. Raises `UsageError`."""
        key, columns = tuple(key or table.partition_key), tuple(columns or table.column_names)
        for name in (*key, *columns):
            if name not in table.column_names:
                raise UsageError(no_column(name, table))
        missing = [name for name in table.partition_key if name not in key]
        if missing:
            raise UsageError(f"a key of {table.name} needs {', '.join(missing)}")
        for name in columns:
            if columns.count(name) > 1:
                raise UsageError(f"column {name!r} is requested twice; name it once")
        rest = tuple(name for name in key if name not in table.partition_key)
        if set(rest) != set(table.clustering_key[: len(rest)]) or len(set(key)) != len(key):
            raise UsageError(
                f"a key of {table.name} is {', '.join(table.partition_key)}, and of "
                f"({', '.join(table.clustering_key)}) the first ones or all"
            )
        return cls(table, key, columns)

    @property
    def never_null(self) -> tuple[str, ...]:
        """The columns in which every row has a value.

        A key with clustering columns finds no row that lacks them.
        """
        by_partition = len(self.key) == len(self.table.partition_key)
        return self.table.never_null if by_partition else self.table.primary_key

    @property
    def by_list(self) -> bool:
        """Whether keys are requested in lists."""
        return len(self.key) == 1 and not _has_equals(self.table.parsed_type(self.key[0]))

    @property
    def fetched(self) -> tuple[str, ...]:
        """The statement's columns: the requested ones, after the key if it identifies rows."""
        return (*self.key, *self.columns) if self.by_list else self.columns

    @property
    def statement(self) -> str:
        """The SELECT; its markers are the key's columns, or one list."""
        names = ", ".join(map(quote_identifier, self.fetched))
        table = f"{quote_identifier(self.table.keyspace)}.{quote_identifier(self.table.table)}"
        if self.by_list:
            where = f"{quote_identifier(self.key[0])} IN ?"
        else:
            where = " AND ".join(f"{quote_identifier(name)} = ?" for name in self.key)
        return f"SELECT {names} FROM {table} WHERE {where}"


def _has_equals(kind: CqlType) -> bool:
    """Return whether different keys of type `kind` may be equal to the server.

    For a list of 1.5 and 1.50 it returns only one of the two partitions. A varint may have
    redundant leading bytes.
    """
    return kind.name in ("decimal", "varint") or any(map(_has_equals, kind.of))


class Lookup:
    """Reads the rows of one unit's keys."""

    def __init__(
        self,
        session: Session,
        plane: ConnectionPool,
        plan: LookupPlan,
        prepared: PreparedStatement,
        options: ReadOptions,
        hooks: LookupHooks,
    ) -> None:
        """`prepared`: `plan.statement`, prepared."""
        self._plan, self._hooks = plan, hooks
        types = [plan.table.parsed_type(name) for name in plan.fetched]
        # If the key is requested as well, Arrow keeps it as another column of the same name.
        self._decoder = PageDecoder(plan.fetched, types)
        self._partition = [plan.key.index(name) for name in plan.table.partition_key]
        self._requested: list[_Requested] = []
        self._cut: set[int] = set()  # lists of which only the first page is used
        self._next_request = self._keys_requested = 0
        self._blocks: list[KeyBlock] = []
        self._held = InOrder()
        if plan.by_list:
            options = replace(options, requests_max=options.requests_max or LISTS_MAX)
        target = Target(session, plane, prepared, plan.table.keyspace)
        request_hooks = RequestHooks(
            tick=hooks.tick,
            throttle=self._throttle,
            on_reject=self._refused,
            on_doubt=hooks.on_doubt,
            leave=self._leave,
            take_over=self._take_over,
            cut_off=self._cut_off,
        )
        self._requests = Requests(target, READ, len(plan.fetched), options, request_hooks)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches of rows: the requested columns."""
        return pa.schema(list(self._decoder.schema)[len(self._decoder.schema) - self._wanted :])

    @property
    def stats(self) -> RequestStats:
        """Counts of requests, most of which are for many keys."""
        return self._requests.stats

    def rows(self, blocks: Iterable[Bound], *, ordered: bool) -> Iterator[Rows]:
        """Yield the rows of the keys, with the keys' numbers.

        A block has the columns `LookupPlan.key`. `ordered`: by the numbers of the keys; the rows of
        one key are always in the order of its clustering columns.
        """
        for answers in self._requests.answers(self._values(blocks)):
            rows = self._rows(answers)
            if ordered:
                self._held.add(rows)
            elif len(rows.numbers):
                yield rows
            yield from self._finish(ordered)
        yield from self._finish(ordered)

    def close(self) -> None:
        """Close connections whose late responses would reach the next unit."""
        self._requests.close()

    @property
    def _wanted(self) -> int:
        return len(self._plan.columns)

    def _throttle(self, requests: int) -> None:
        """Convert requests to keys, which the rate limit counts."""
        self._hooks.throttle(round(requests * self._keys_each))

    def _leave(self) -> Leave:
        """Return the leave in requests; see `_throttle`."""
        keys, requests = self._hooks.leave()
        return Leave(max(1, int(keys / self._keys_each)), requests)

    @property
    def _keys_each(self) -> float:
        """Mean number of keys of a request so far."""
        return self._keys_requested / self._next_request if self._next_request else 1.0

    def _values(self, blocks: Iterable[Bound]) -> Iterator[Values]:
        for bound in blocks:
            numbers, columns = self._without_nulls(bound)
            if not len(numbers):
                continue
            if not self._plan.by_list:
                keys = routing_keys([columns[i] for i in self._partition])
                block = KeyBlock.of_single_keys(numbers)
                yield self._ask(block, join_rows(columns), keys, block.each(), block.each() + 1)
                continue
            block, firsts, lasts = KeyBlock.of_lists(
                numbers, columns[0], self._requests.replica_sets
            )
            yield self._ask(block, *block.lists(firsts, lasts), firsts, lasts)

    def _without_nulls(self, bound: Bound) -> tuple[Ints, Sequence[Cells]]:
        """Return the keys without nulls, and reject the others."""
        least = 1 if self._plan.by_list else 0
        good = np.ones(len(bound.numbers), np.bool_)
        for name, column in zip(self._plan.key, bound.columns, strict=True):
            if column.fixed_values is not None:
                continue
            short = good & (column.lengths < least)
            for number in bound.numbers[short].tolist():
                self._hooks.on_reject(number, f"column {name}: missing, and it is part of the key")
            good &= ~short
        if good.all():
            return bound.numbers, bound.columns
        return bound.numbers[good], [column.filter(good) for column in bound.columns]

    def _ask(
        self, block: KeyBlock, bound: pa.BinaryArray, keys: pa.BinaryArray, first: Ints, last: Ints
    ) -> Values:
        """Return requests for the keys first[i]..last[i]-1 of a block."""
        begin = self._next_request
        self._next_request += len(first)
        self._keys_requested += int(np.sum(last - first))
        self._requested.append(_Requested(begin, block, first, last))
        if block not in self._blocks:
            self._blocks.append(block)
        block.left += len(first)
        return Values(np.arange(begin, self._next_request), bound, keys)

    def _keys_of_request(self, request: int) -> tuple[KeyBlock, int, int]:
        """Return the keys of a request: their block, and positions from first to before end."""
        requested = next(
            requested for requested in reversed(self._requested) if requested.begin <= request
        )
        at = request - requested.begin
        return requested.block, int(requested.first[at]), int(requested.last[at])

    def _take_over(self, request: int) -> bool:
        """Request the keys of a refused list one by one; return whether it was a list."""
        block, first, last = self._keys_of_request(request)
        if last - first == 1:
            return False
        block.left -= 1
        self._ask_each(block, np.arange(first, last))
        return True

    def _cut_off(self, request: int) -> bool:
        """Take only the first page of a list; return whether it was a list. See `_without_rest`."""
        _, first, last = self._keys_of_request(request)
        if last - first == 1:
            return False
        self._cut.add(request)
        return True

    def _ask_each(self, block: KeyBlock, keys: Ints) -> None:
        """Request ascending keys of a block one by one."""
        each = np.arange(keys[0], keys[-1] + 1)
        bound, routed = block.lists(each, each + 1)
        chosen = pa.array(keys - keys[0])
        values = self._ask(block, bound.take(chosen), routed.take(chosen), keys, keys + 1)
        self._requests.enqueue(values)

    def _refused(self, request: int, reason: str) -> None:
        """Reject a single key."""
        block, key, _ = self._keys_of_request(request)
        block.left -= 1
        block.settled[key] = True
        for number in block.numbers_of(np.array([key]))[1].tolist():
            self._hooks.on_reject(number, reason)

    def _rows(self, answers: Answers) -> Rows:
        """Return the rows of some responses, as often as their key was given."""
        pieces, taken, numbers, count, dropped = [], [], [], 0, 0
        begins = [requested.begin for requested in self._requested]
        for piece in answers.pieces:
            owners = np.searchsorted(begins, piece.numbers, side="right") - 1
            distinct = np.unique(owners).tolist()
            for owner in distinct:
                requested = self._requested[owner]
                part = piece if len(distinct) == 1 else piece.pick(owners == owner)
                keys = self._keys_of(requested, part)
                requested.block.left -= int(np.count_nonzero(part.last))
                rows, which = requested.block.numbers_of(keys)
                if self._cut:
                    whole = self._without_rest(part, keys)
                    dropped += len(keys) - int(np.count_nonzero(whole))
                    rows, which = rows[whole[rows]], which[whole[rows]]
                pieces.append(part)
                taken.append(rows + count)
                numbers.append(which)
                count += len(keys)
        columns = len(self._plan.fetched)
        batch = self._decoder.decode(page(pieces, columns))
        first = columns - self._wanted
        batch = pa.RecordBatch.from_arrays(batch.columns[first:], schema=self.schema)
        rows = np.concatenate([np.zeros(0, np.int64), *taken])
        found = Rows(np.concatenate([np.zeros(0, np.int64), *numbers]), batch)
        # A row counts as often as it is in the output: as often as its key was given.
        self.stats.rows += len(rows) - count
        if dropped or len(rows) != count:
            found = Rows(found.numbers, batch.take(pa.array(rows)))
        return found

    def _without_rest(self, piece: Piece, keys: Ints) -> NDArray[np.bool_]:
        """Request the rest of lists that were cut off; return for each row whether it is kept.

        The last key of a page may have more rows, so it is requested again, with the keys without
        rows.
        """
        whole = np.ones(len(keys), np.bool_)
        ends = np.cumsum(piece.counts)
        for i, request in enumerate(piece.numbers.tolist()):
            if request not in self._cut:
                continue
            self._cut.remove(request)
            block, first, last = self._keys_of_request(request)
            rows = slice(int(ends[i] - piece.counts[i]), int(ends[i]))
            if piece.counts[i]:
                key = keys[rows][-1]
                whole[rows] = keys[rows] != key
                block.settled[key] = False
            self._ask_each(block, first + np.flatnonzero(~block.settled[first:last]))
        return whole

    def _keys_of(self, requested: _Requested, piece: Piece) -> Ints:
        """Return for each row of some responses the position of its key in the block."""
        at = piece.numbers - requested.begin
        first, last = requested.first[at], requested.last[at]
        if self._plan.by_list:
            lists = requested.block.key_lists
            assert lists is not None
            return match_keys(piece, len(self._plan.fetched), first, last, lists)
        keys = np.repeat(first, piece.counts)
        requested.block.settled[keys] = True
        return keys

    def _finish(self, ordered: bool) -> Iterator[Rows]:
        """Report keys without rows in blocks that are done; if ordered, yield their rows."""
        end = None
        while self._blocks and not self._blocks[0].left:
            block = self._blocks.pop(0)
            missing = block.missing()
            if len(missing):
                self._hooks.on_missing(missing)
            end = int(block.numbers[-1]) + 1
            self._requested = [
                requested for requested in self._requested if requested.block is not block
            ]
        if ordered and end is not None:
            ready = self._held.up_to(end)
            if ready is not None:
                yield ready


class _Requested(NamedTuple):
    """Requests from the number `begin` on: each for the keys first..last-1 of a block."""

    begin: int
    block: KeyBlock
    first: Ints
    last: Ints
