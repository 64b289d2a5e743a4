"""`lookup`: the rows of a list of keys, as columns.

Keys of one partition column are asked for in lists, `WHERE pk IN ?`: the keys of a list share their
replicas, and the server answers a list for little more than a key. Any other key (of several
columns, with clustering columns, or with decimals or varints in it) is a statement of its own. Rows
of a list find their keys by their first column's bytes, so a key that stands in the list of keys
twice is asked for once and answered twice.

A list stands for its keys only as long as nothing goes wrong. One that the server refuses is asked
for again key by key: the key at fault is the reject. So is the rest of a list whose rows are more
than a page. A refusal then never comes behind a list's first page, when nobody could tell which of
its rows were handed out already.
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
from ringhaul.dataplane.pool import Plane
from ringhaul.errors import UsageError
from ringhaul.statements.answers import Answers
from ringhaul.statements.exec import Bound
from ringhaul.statements.idempotence import Effect
from ringhaul.statements.in_order import InOrder, Rows
from ringhaul.statements.key_block import KeyBlock
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats
from ringhaul.statements.replies import Ints, Piece, match_keys, page
from ringhaul.statements.requests import Requests, Values

#: Lists without an answer on one wire: more only wait in the server.
LISTS_MAX = 32

_READ = Effect("select", repeatable=True, conditional=False, single=True)


@dataclass(frozen=True, kw_only=True)
class LookupHooks(RequestHooks):
    """As for requests; numbers are those of keys. Reads are never in doubt."""

    #: Numbers of keys without a row, as they are known.
    on_missing: Callable[[Ints], None]


@dataclass(frozen=True)
class LookupPlan:
    """What is asked for."""

    table: TableSchema
    #: The key's columns: the whole partition key, and of the clustering key the first ones or all.
    key: tuple[str, ...]
    columns: tuple[str, ...]  #: that are wanted

    @classmethod
    def of(
        cls, table: TableSchema, key: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> LookupPlan:
        """`key`: empty for the partition key. `columns`: empty for all. Raises `UsageError`."""
        key, columns = tuple(key or table.partition_key), tuple(columns or table.column_names)
        for name in (*key, *columns):
            if name not in table.column_names:
                raise UsageError(no_column(name, table))
        missing = [name for name in table.partition_key if name not in key]
        if missing:
            raise UsageError(f"a key of {table.name} needs {', '.join(missing)}")
        for name in columns:
            if columns.count(name) > 1:
                raise UsageError(f"column {name!r} is wanted twice; name it once")
        rest = tuple(name for name in key if name not in table.partition_key)
        if set(rest) != set(table.clustering_key[: len(rest)]) or len(set(key)) != len(key):
            raise UsageError(
                f"a key of {table.name} is {', '.join(table.partition_key)}, and of "
                f"({', '.join(table.clustering_key)}) the first ones or all"
            )
        return cls(table, key, columns)

    @property
    def never_null(self) -> tuple[str, ...]:
        """The columns in which every row has a value. A key with clustering columns finds no row
        that has none of them."""
        by_partition = len(self.key) == len(self.table.partition_key)
        return self.table.never_null if by_partition else self.table.primary_key

    @property
    def by_list(self) -> bool:
        """Keys are asked for in lists."""
        return len(self.key) == 1 and not _has_equals(self.table.parsed_type(self.key[0]))

    @property
    def fetched(self) -> tuple[str, ...]:
        """The columns of the statement: those wanted, after the key where rows are told by it."""
        return (*self.key, *self.columns) if self.by_list else self.columns

    @property
    def statement(self) -> str:
        """The SELECT; its markers are those of the key, or one list."""
        names = ", ".join(map(quote_identifier, self.fetched))
        table = f"{quote_identifier(self.table.keyspace)}.{quote_identifier(self.table.table)}"
        if self.by_list:
            where = f"{quote_identifier(self.key[0])} IN ?"
        else:
            where = " AND ".join(f"{quote_identifier(name)} = ?" for name in self.key)
        return f"SELECT {names} FROM {table} WHERE {where}"


def _has_equals(kind: CqlType) -> bool:
    """Values of `kind` may be equal to the server and still be different keys: it answers one of
    the partitions 1.5 and 1.50 to a list of both. A varint may have redundant leading bytes."""
    return kind.name in ("decimal", "varint") or any(map(_has_equals, kind.of))


class Lookup:
    """The rows of one unit's keys."""

    def __init__(
        self,
        session: Session,
        plane: Plane,
        plan: LookupPlan,
        prepared: PreparedStatement,
        options: ReadOptions,
        hooks: LookupHooks,
    ) -> None:
        """`prepared`: of `plan.statement`."""
        self._plan, self._hooks = plan, hooks
        types = [plan.table.parsed_type(name) for name in plan.fetched]
        # Arrow takes the key for another column when it is wanted, too.
        self._decoder = PageDecoder(plan.fetched, types)
        self._partition = [plan.key.index(name) for name in plan.table.partition_key]
        self._asked: list[_Asked] = []
        self._cut: set[int] = set()  # lists of which only the first page is taken
        self._next_request = self._keys_asked = 0
        self._blocks: list[KeyBlock] = []
        self._held = InOrder()
        if plan.by_list:
            options = replace(options, requests_max=options.requests_max or LISTS_MAX)
        target = Target(session, plane, prepared, plan.table.keyspace)
        told = RequestHooks(
            tick=hooks.tick,
            throttle=self._throttle,
            on_reject=self._refused,
            on_doubt=hooks.on_doubt,
            leave=self._leave,
            take_over=self._take_over,
            cut_off=self._cut_off,
        )
        self._requests = Requests(target, _READ, len(plan.fetched), options, told)

    @property
    def schema(self) -> pa.Schema:
        """Of the batches of rows: the columns that are wanted."""
        return pa.schema(list(self._decoder.schema)[len(self._decoder.schema) - self._wanted :])

    @property
    def stats(self) -> RequestStats:
        """Of the requests, most of which are for many keys."""
        return self._requests.stats

    def rows(self, blocks: Iterable[Bound], *, ordered: bool) -> Iterator[Rows]:
        """The rows of the keys, with the keys' numbers.

        A block's columns are those of `LookupPlan.key`. `ordered`: by the numbers of the keys; the
        rows of a key are in the order of its clustering columns anyway.
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
        """Leave nothing behind for the next unit."""
        self._requests.close()

    @property
    def _wanted(self) -> int:
        return len(self._plan.columns)

    def _throttle(self, requests: int) -> None:
        """A rate limit is of keys."""
        self._hooks.throttle(round(requests * self._keys_each))

    def _leave(self) -> Leave:
        """As `throttle`, in requests."""
        keys, requests = self._hooks.leave()
        return Leave(max(1, int(keys / self._keys_each)), requests)

    @property
    def _keys_each(self) -> float:
        """Keys of a request, on the average of those that were asked for so far."""
        return self._keys_asked / self._next_request if self._next_request else 1.0

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
        """The keys that can be asked for."""
        least = 1 if self._plan.by_list else 0
        good = np.ones(len(bound.numbers), np.bool_)
        for name, column in zip(self._plan.key, bound.columns, strict=True):
            if column.fixed_values is not None:
                continue
            short = good & (column.lengths < least)
            for number in bound.numbers[short].tolist():
                self._hooks.on_reject(number, f"column {name}: null or nothing, and a key needs it")
            good &= ~short
        if good.all():
            return bound.numbers, bound.columns
        return bound.numbers[good], [column.filter(good) for column in bound.columns]

    def _ask(
        self, block: KeyBlock, bound: pa.BinaryArray, keys: pa.BinaryArray, first: Ints, last: Ints
    ) -> Values:
        """Requests of keys first[i]..last[i]-1 of a block."""
        begin = self._next_request
        self._next_request += len(first)
        self._keys_asked += int(np.sum(last - first))
        self._asked.append(_Asked(begin, block, first, last))
        if block not in self._blocks:
            self._blocks.append(block)
        block.left += len(first)
        return Values(np.arange(begin, self._next_request), bound, keys)

    def _keys_asked_by(self, request: int) -> tuple[KeyBlock, int, int]:
        """The keys of a request: a block, and the positions of the first and behind the last."""
        asked = next(asked for asked in reversed(self._asked) if asked.begin <= request)
        at = request - asked.begin
        return asked.block, int(asked.first[at]), int(asked.last[at])

    def _take_over(self, request: int) -> bool:
        """The keys of a list that is refused are asked for one by one."""
        block, first, last = self._keys_asked_by(request)
        if last - first == 1:
            return False
        block.left -= 1
        self._ask_each(block, np.arange(first, last))
        return True

    def _cut_off(self, request: int) -> bool:
        """So are those that are not whole on the first page of a list; see `_without_rest`."""
        _, first, last = self._keys_asked_by(request)
        if last - first == 1:
            return False
        self._cut.add(request)
        return True

    def _ask_each(self, block: KeyBlock, keys: Ints) -> None:
        """Ask for keys of a block, which are ascending, one by one."""
        each = np.arange(keys[0], keys[-1] + 1)
        bound, routed = block.lists(each, each + 1)
        chosen = pa.array(keys - keys[0])
        values = self._ask(block, bound.take(chosen), routed.take(chosen), keys, keys + 1)
        self._requests.ask(values)

    def _refused(self, request: int, reason: str) -> None:
        """A single key is at fault."""
        block, key, _ = self._keys_asked_by(request)
        block.left -= 1
        block.settled[key] = True
        for number in block.numbers_of(np.array([key]))[1].tolist():
            self._hooks.on_reject(number, reason)

    def _rows(self, answers: Answers) -> Rows:
        """The rows of some answers, once for each time that their key was given."""
        pieces, taken, numbers, count, dropped = [], [], [], 0, 0
        begins = [asked.begin for asked in self._asked]
        for piece in answers.pieces:
            owners = np.searchsorted(begins, piece.numbers, side="right") - 1
            distinct = np.unique(owners).tolist()
            for owner in distinct:
                asked = self._asked[owner]
                part = piece if len(distinct) == 1 else piece.pick(owners == owner)
                keys = self._keys_of(asked, part)
                asked.block.left -= int(np.count_nonzero(part.last))
                rows, which = asked.block.numbers_of(keys)
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
        self.stats.rows -= dropped
        if dropped or len(rows) != count:
            found = Rows(found.numbers, batch.take(pa.array(rows)))
        return found

    def _without_rest(self, piece: Piece, keys: Ints) -> NDArray[np.bool_]:
        """Ask for what is missing of lists that were cut off. Of each row: whether it is taken.

        The last key of a page may have more rows, so it is asked for with those that have none.
        """
        whole = np.ones(len(keys), np.bool_)
        ends = np.cumsum(piece.counts)
        for i, request in enumerate(piece.numbers.tolist()):
            if request not in self._cut:
                continue
            self._cut.remove(request)
            block, first, last = self._keys_asked_by(request)
            rows = slice(int(ends[i] - piece.counts[i]), int(ends[i]))
            if piece.counts[i]:
                key = keys[rows][-1]
                whole[rows] = keys[rows] != key
                block.settled[key] = False
            self._ask_each(block, first + np.flatnonzero(~block.settled[first:last]))
        return whole

    def _keys_of(self, asked: _Asked, piece: Piece) -> Ints:
        """Of each row of some answers, the position of its key in the block."""
        at = piece.numbers - asked.begin
        first, last = asked.first[at], asked.last[at]
        if self._plan.by_list:
            lists = asked.block.key_lists
            assert lists is not None
            return match_keys(piece, len(self._plan.fetched), first, last, lists)
        keys = np.repeat(first, piece.counts)
        asked.block.settled[keys] = True
        return keys

    def _finish(self, ordered: bool) -> Iterator[Rows]:
        """Tell of the keys without rows in blocks that are done; in order, hand out their rows."""
        end = None
        while self._blocks and not self._blocks[0].left:
            block = self._blocks.pop(0)
            missing = block.missing()
            if len(missing):
                self._hooks.on_missing(missing)
            end = int(block.numbers[-1]) + 1
            self._asked = [asked for asked in self._asked if asked.block is not block]
        if ordered and end is not None:
            ready = self._held.up_to(end)
            if ready is not None:
                yield ready


class _Asked(NamedTuple):
    """Requests from the number `begin` on: each for the keys first..last-1 of a block."""

    begin: int
    block: KeyBlock
    first: Ints
    last: Ints
