"""Aggregation in parts: each unit makes a `Partial` of its rows, and all partials are merged.

Merging is associative and commutative. For a given query and set of rows, the result does not
depend on how the rows were split or in what order parts were merged. This is exact except for sums,
averages and spreads of floats, whose error is bounded: see `states`.
"""

from __future__ import annotations

import pyarrow as pa

from ringhaul.query import packing, results
from ringhaul.query.groups import Groups
from ringhaul.query.predicates import normaliser
from ringhaul.query.scalars import Scalar
from ringhaul.query.select import Select
from ringhaul.query.states import Counters, Measure, States

#: Rows are collected up to this number, or this many bytes, before they are reduced: reducing costs
#: about 0.3 ms however few rows there are.
_ROWS_MIN = 65_536
_BYTES_MIN = 32 << 20
#: States are merged when this many new groups were added since the last merge, or as many as it
#: left.
_GROUPS_MIN = 65_536


class Aggregation:
    """Computes the groups of a `Select`. Cheap to make; stateless.

    `exact_keys`: values that are equal but not identical, such as 1.5 and 1.50, form separate
    groups, as they are separate partitions.
    """

    def __init__(self, select: Select, *, exact_keys: bool = False) -> None:
        assert select.is_aggregate
        self.select = select
        self._arguments: dict[str, Scalar | None] = {}
        measures: dict[tuple[str, Measure], int] = {}
        counters: dict[tuple[str, Counters], int] = {}
        #: The places of each aggregate's states: (among the counters?, index).
        self.places: list[list[tuple[bool, int]]] = []
        for aggregate in select.aggregates:
            argument = aggregate.argument
            name = argument.label if argument is not None else "*"
            self._arguments[name] = argument
            places = []
            # avg(x) and sum(x) share the same states.
            for measure in aggregate.measures():
                if isinstance(measure, Counters):
                    places.append((True, counters.setdefault((name, measure), len(counters))))
                else:
                    places.append((False, measures.setdefault((name, measure), len(measures))))
            self.places.append(places)
        self._measures = list(measures)
        self._counters = list(counters)
        self._normalisers = [
            _identity if exact_keys else normaliser(fetch.type) for fetch in select.groups
        ]

    def partial(self) -> Partial:
        return Partial(self)

    def unpack(self, data: bytes) -> Partial:
        """Read a packed partial of the same query. Raises `ValueError` for anything else."""
        partial = Partial(self)
        partial.add(packing.unpack(data, self.fingerprint, self.aggregate(self._no_rows())))
        return partial

    @property
    def fingerprint(self) -> str:
        """Text that is equal exactly for queries whose partials can be merged."""
        parts = [f"{fetch.name} {fetch.type.to_json()}" for fetch in self.select.groups]
        for name, measure in [*self._measures, *self._counters]:
            argument = self._arguments[name]
            of = argument.type.to_json() if argument is not None else ""
            parts.append(f"{measure} {name} {of}")
        return "\n".join(parts)

    def aggregate(self, batch: pa.RecordBatch) -> States:
        """Return the states of the rows of `batch`, which passed the WHERE."""
        keys = [
            normal(batch.column(fetch.name))
            for fetch, normal in zip(self.select.groups, self._normalisers, strict=True)
        ]
        groups = Groups.of(keys, batch.num_rows)
        values = {
            name: argument.evaluate(batch) if argument is not None else pa.nulls(0)
            for name, argument in self._arguments.items()
        }
        firsts = pa.array(groups.firsts)
        return States(
            [key.take(firsts) for key in keys],
            [measure.from_rows(values[name], groups) for name, measure in self._measures],
            [counters.from_rows(values[name], groups) for name, counters in self._counters],
            groups.count,
        )

    def merge(self, parts: list[States]) -> States:
        """Merge the states of all `parts`."""
        if len(parts) == 1:
            return parts[0]
        keys = [_joined([part.keys[i] for part in parts]) for i in range(len(self.select.groups))]
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + part.groups_count)
        groups = Groups.of(keys, starts[-1])
        firsts = pa.array(groups.firsts)
        columns = [
            measure.merge(_joined_each([part.columns[i] for part in parts]), groups)
            for i, (_, measure) in enumerate(self._measures)
        ]
        counters = []
        for i, (_, counter) in enumerate(self._counters):
            moved = [
                [
                    pa.array(groups.ids[start:][part.counters[i][0].to_numpy()]),
                    *part.counters[i][1:],
                ]
                for start, part in zip(starts[:-1], parts, strict=True)
            ]
            counters.append(counter.merge(_joined_each(moved)))
        return States([key.take(firsts) for key in keys], columns, counters, groups.count)

    def finish(self, states: States) -> pa.Table:
        """Return the result: columns `select.names`, in the Arrow forms of `select.types`."""
        computed = [
            aggregate.result(
                [(states.counters if extra else states.columns)[i] for extra, i in places],
                states.groups_count,
            )
            for aggregate, places in zip(self.select.aggregates, self.places, strict=True)
        ]
        return results.finish(self.select, states.keys, computed)

    def nothing(self) -> States:
        """Return the states of zero rows: one group if the query has no GROUP BY."""
        return self.aggregate(self._no_rows())

    def _no_rows(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(
            [], pa.schema([(f.name, f.type.arrow()) for f in self.select.fetches])
        )


class Partial:
    """The states of some of the rows. Not thread-safe."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._parts: list[States] = []
        self._merged = 0

    def update(self, batch: pa.RecordBatch) -> int:
        """Add the rows of `batch` (it has `select.columns`) that match the WHERE.

        Returns the number of added rows. Raises `QueryError` if a value cannot be computed, such as
        a product beyond bigint.
        """
        select = self._aggregation.select
        kept = select.where.filter(batch)
        if not kept.num_rows:
            return 0
        if kept.num_columns > len(select.columns):
            kept = kept.select(list(select.columns))
        self._batches.append(kept)
        self._rows += kept.num_rows
        self._bytes += kept.nbytes
        if self._rows >= _ROWS_MIN or self._bytes >= _BYTES_MIN:
            self._reduce()
        return int(kept.num_rows)

    def merge(self, other: Partial) -> None:
        """Add the states of `other`, which keeps them too."""
        if other._aggregation.fingerprint != self._aggregation.fingerprint:
            raise ValueError("partials of different queries cannot be merged")
        other._reduce()
        for part in list(other._parts):
            self.add(part)

    def add(self, states: States) -> None:
        self._parts.append(states)
        new = sum(part.rows_count for part in self._parts[1:])
        if new > max(_GROUPS_MIN, self._merged):
            self._merge()

    def pack(self) -> bytes:
        """Return the states as compressed bytes, for `Aggregation.unpack`."""
        return packing.pack(self._states(), self._aggregation.fingerprint)

    def finish(self) -> pa.Table:
        """Return the result so far: see `Aggregation.finish`."""
        return self._aggregation.finish(self._states())

    @property
    def groups_count(self) -> int:
        return self._states().groups_count

    @property
    def nbytes(self) -> int:
        """Approximate memory use: bytes of the states and of rows not reduced yet."""
        states = sum(array.nbytes for part in self._parts for array in part.arrays())
        return int(states) + self._bytes

    def _states(self) -> States:
        self._reduce()
        self._merge()
        return self._parts[0] if self._parts else self._aggregation.nothing()

    def _reduce(self) -> None:
        if not self._batches:
            return
        if len(self._batches) == 1:
            batch = self._batches[0]
        else:
            batch = pa.Table.from_batches(self._batches).combine_chunks().to_batches()[0]
        self._batches, self._rows, self._bytes = [], 0, 0
        self.add(self._aggregation.aggregate(batch))

    def _merge(self) -> None:
        if len(self._parts) > 1:
            self._parts = [self._aggregation.merge(self._parts)]
        self._merged = self._parts[0].rows_count if self._parts else 0


def _identity(array: pa.Array) -> pa.Array:
    return array


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(arrays)


def _joined_each(parts: list[list[pa.Array]]) -> list[pa.Array]:
    return [_joined(list(arrays)) for arrays in zip(*parts, strict=True)]
