"""States of groups: columns with one row per group, merged by reducing them again.

A measure computes its columns from the rows of a batch (`from_rows`), and likewise from the rows of
several sets of states (`merge`). Both are associative and commutative, so it does not matter how
rows are split and states are merged: exactly for whole numbers, varint and decimal, extremes and
counts; up to the rounding of doubles for sums of floats and for spreads.

Floats: a sum is two doubles, the first summed without any rounding error, the second the remainder;
it is within 1e-11 of the sum of the magnitudes, mostly the nearest double. A spread is the count,
mean and sum of squared differences from the mean, merged as by Chan, Golub and LeVeque: for 20,000
values, variances were within 1e-14 of the true ones, and within 1e-16 times the mean in standard
deviations (1e-8 where that is 10^8). A result beyond the doubles is infinite; a spread of values
that are not finite is NaN, as in DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.types import FLOATS, CqlType
from ringhaul.query import exact_numbers
from ringhaul.query.groups import Groups, Ids
from ringhaul.query.literals import INTEGER_BITS
from ringhaul.query.predicates import normaliser
from ringhaul.query.scalars import EXACT_TEXTS, as_doubles
from ringhaul.query.sketches import buckets_of, not_null, registers_of

_LIMB = np.int64(0xFFFFFFFF)
#: Beyond it a sum of squares may overflow: such numbers are stored as multiples of 2^600.
_LARGE, _LARGE_EXPONENT = 2.0**480, 600
Doubles = NDArray[np.float64]


class Measure(Protocol):
    """Computes columns of states, with one row per group."""

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]: ...

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]: ...


@dataclass(frozen=True)
class Rows:
    """The number of rows."""

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        del values
        return [pa.array(groups.sizes())]

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        return _zero_of_none(groups.reduce((states[0], "sum")))


@dataclass(frozen=True)
class Present:
    """The number of values that are not null."""

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        if not values.null_count:
            return [pa.array(groups.sizes())]
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        return [pa.array(np.bincount(groups.ids[valid], minlength=groups.count).astype(np.int64))]

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        return _zero_of_none(groups.reduce((states[0], "sum")))


@dataclass(frozen=True)
class WholeSum:
    """Exact sum of whole numbers: three limbs of 32, 32 and 64 bits, the last one signed."""

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        values = values.cast(pa.int64())
        bounds = pc.min_max(values)
        low, high = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
        if max(-low, high) * max(len(values), 1) < 2**63:
            (sums,) = _zero_of_none(groups.reduce((values, "sum")))
            zeros = np.zeros(groups.count, np.int64)
            return _carried(sums.to_numpy(), zeros, zeros)
        numbers = values.fill_null(0).to_numpy()
        limbs = [(pa.array(numbers & _LIMB), "sum"), (pa.array(numbers >> 32), "sum")]
        sums_low, sums_middle = (limb.to_numpy() for limb in _zero_of_none(groups.reduce(*limbs)))
        return _carried(sums_low, sums_middle, np.zeros(groups.count, np.int64))

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        sums = _zero_of_none(groups.reduce(*((state, "sum") for state in states)))
        return _carried(*(limb.to_numpy() for limb in sums))

    @staticmethod
    def value(limbs: tuple[int, int, int]) -> int:
        low, middle, high = limbs
        return (high << 64) + (middle << 32) + low


def _carried(
    low: NDArray[np.int64], middle: NDArray[np.int64], high: NDArray[np.int64]
) -> list[pa.Array]:
    middle = middle + (low >> 32)
    high = high + (middle >> 32)
    return [pa.array(low & _LIMB), pa.array(middle & _LIMB), pa.array(high)]


@dataclass(frozen=True)
class ExactSum:
    """Exact sum of varint or decimal, as text, and the greatest scale of a value."""

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        return self.merge([values, exact_numbers.scales_of(values)], groups)

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        texts, scales = states
        (greatest,) = groups.reduce((scales, "max"))
        numbers = exact_numbers.as_decimals(texts, spare_digits=len(str(len(texts))))
        if numbers is not None:
            return [groups.reduce((numbers, "sum"))[0].cast(pa.string()), greatest]
        return [_texts(groups.fold(exact_numbers.values_of(texts), exact_numbers.add)), greatest]


@dataclass(frozen=True)
class ExactExtreme:
    """Minimum or maximum (`how`) of varint or decimal, in the form of `ExactSum`."""

    how: str

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        return self.merge([values, exact_numbers.scales_of(values)], groups)

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        texts, scales = states
        (greatest,) = groups.reduce((scales, "max"))
        numbers = exact_numbers.as_decimals(texts)
        if numbers is not None:
            return [groups.reduce((numbers, self.how))[0].cast(pa.string()), greatest]
        best = min if self.how == "min" else max
        return [_texts(groups.fold(exact_numbers.values_of(texts), best)), greatest]


@dataclass(frozen=True)
class Extreme:
    """Minimum or maximum (`how`) of a type that Arrow orders as CQL does: text by its bytes."""

    how: str

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        return self.merge([values], groups)

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        (values,) = states
        if pa.types.is_boolean(values.type):
            return [groups.reduce((values.cast(pa.int8()), self.how))[0].cast(pa.bool_())]
        if not pa.types.is_string(values.type) and not pa.types.is_binary(values.type):
            return groups.reduce((values, self.how))
        # Reduce the ranks of the distinct texts, which are numbers.
        encoded = pc.dictionary_encode(values)
        order = pc.array_sort_indices(encoded.dictionary)
        places = np.empty(len(order), np.int32)
        places[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
        (found,) = groups.reduce((pa.array(places).take(encoded.indices), self.how))
        return [encoded.dictionary.take(order.take(found))]


@dataclass(frozen=True)
class FloatExtreme:
    """Minimum or maximum (`how`) of float or double without NaNs, and the number of NaNs."""

    how: str

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        nan = pc.is_nan(values).fill_null(False)
        if not pc.any(nan).as_py():
            zeros = pa.array(np.zeros(groups.count, np.int64))
            return [*groups.reduce((values, self.how)), zeros]
        numbers = pc.if_else(nan, pa.scalar(None, values.type), values)
        found = groups.reduce((numbers, self.how), (nan.cast(pa.int64()), "sum"))
        return [found[0], *_zero_of_none(found[1:])]

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        found = groups.reduce((states[0], self.how), (states[1], "sum"))
        return [found[0], *_zero_of_none(found[1:])]

    def value(self, number: float | None, nans: int) -> float | None:
        """Return the extreme. NaN is the greatest value. -0.0 becomes 0.0, as which of the two is
        kept is arbitrary."""
        if nans and (self.how == "max" or number is None):
            return float("nan")
        return None if number is None else number + 0.0


@dataclass(frozen=True)
class FloatSum:
    """Sum of float or double: a part without rounding errors, the remainder, and the sum of values
    that are not finite."""

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        numbers = as_doubles(values).fill_null(0.0).to_numpy()
        zeros = np.zeros(len(numbers))
        finite = np.isfinite(numbers)
        if finite.all():
            return self._sums(numbers, zeros, None, groups)
        return self._sums(
            np.where(finite, numbers, 0.0), zeros, np.where(finite, 0.0, numbers), groups
        )

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        main, rest, special = (state.to_numpy() for state in states)
        return self._sums(main, rest, special if special.any() else None, groups)

    def _sums(
        self, numbers: Doubles, rest: Doubles, special: Doubles | None, groups: Groups
    ) -> list[pa.Array]:
        coarse, fine = _split(numbers)
        parts = [(pa.array(coarse), "sum"), (pa.array(fine + rest), "sum")]
        if special is not None:
            parts.append((pa.array(special), "sum"))
        found = [part.to_numpy() for part in _zero_of_none(groups.reduce(*parts), 0.0)]
        main, left = found[0], found[1]
        with np.errstate(over="ignore", invalid="ignore"):
            total = main + left
            back = total - main
            error = (main - (total - back)) + (left - back)
        specials = found[2] if special is not None else np.zeros(groups.count)
        # A sum that overflowed stays infinite, unless a value that is not finite was added.
        left_range = ~np.isfinite(total)
        specials = np.where(left_range & (specials == 0), total, specials)
        total, error = (np.where(left_range, 0.0, part) for part in (total, error))
        return [pa.array(total), pa.array(error), pa.array(specials)]

    @staticmethod
    def value(main: float, rest: float, special: float) -> float:
        return special if special else main + rest


def _split(numbers: Doubles) -> tuple[Doubles, Doubles]:
    """Split each number into a multiple of a unit so coarse that sums are exact, and the remainder.

    Adding and subtracting 1.5 x 2^e leaves a multiple of 2^(e - 52). With 2^e above the sum of all
    magnitudes, every partial sum is such a multiple, of less than 53 bits.
    """
    greatest = float(np.abs(numbers).max(initial=0.0))
    exponent = int(np.frexp(greatest)[1]) + len(numbers).bit_length() + 1
    if greatest == 0.0 or not -900 < exponent < 1000:
        return np.zeros_like(numbers), numbers
    unit = 1.5 * 2.0**exponent
    coarse = (numbers + unit) - unit
    return coarse, numbers - coarse


@dataclass(frozen=True)
class Spread:
    """Count, mean, and sum of squared differences from the mean; and the exponent of the unit of
    the latter two, which is 0 except for large numbers."""

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        numbers = as_doubles(values)
        exponents = np.zeros(groups.count, np.int32)
        bounds = pc.min_max(numbers)
        low, high = bounds["min"].as_py() or 0.0, bounds["max"].as_py() or 0.0
        if not max(-low, high) <= _LARGE:
            numbers = _scaled(numbers, groups, exponents)
        counts, means, variances = groups.reduce(
            (numbers, "count"), (numbers, "mean"), (numbers, "variance")
        )
        (counts,) = _zero_of_none([counts])
        means, variances = _zero_of_none([means, variances], 0.0)
        squares = pc.multiply(variances, counts.cast(pa.float64()))
        return [counts, means, squares, pa.array(exponents)]

    def merge(self, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
        counts, means, squares, exponents = (state.to_numpy() for state in states)
        units = np.zeros(groups.count, np.int32)
        if exponents.any():
            units = _zero_of_none(groups.reduce((states[3], "max")))[0].to_numpy()
            less = exponents - units[groups.ids]
            means, squares = np.ldexp(means, less), np.ldexp(squares, 2 * less)
        # Differences from one of the group's means are small compared with the means.
        near = means[groups.firsts]
        moved = means - near[groups.ids]
        sums = _zero_of_none(
            groups.reduce((pa.array(counts), "sum"), (pa.array(counts * moved), "sum")), 0
        )
        all_counts = sums[0].to_numpy()
        shift = sums[1].to_numpy() / np.maximum(all_counts, 1)
        apart = moved - shift[groups.ids]
        terms = np.where(counts == 0, 0.0, squares + counts * apart * apart)
        (all_squares,) = _zero_of_none(groups.reduce((pa.array(terms), "sum")), 0.0)
        return [sums[0], pa.array(near + shift), all_squares, pa.array(units)]

    @staticmethod
    def values(states: list[pa.Array], less: int, *, root: bool) -> pa.Array:
        """Return the variance of each group, divided by count - `less`, or its root."""
        counts, _, squares, exponents = (state.to_numpy() for state in states)
        enough = counts > less
        variances = squares / np.where(enough, counts - less, 1)
        with np.errstate(over="ignore"):
            found = (
                np.ldexp(np.sqrt(variances), exponents)
                if root
                else np.ldexp(variances, 2 * exponents)
            )
        return pa.array(found, mask=~enough)


def _scaled(numbers: pa.Array, groups: Groups, exponents: NDArray[np.int32]) -> pa.Array:
    """Scale groups with large numbers, and set their `exponents`; infinity becomes NaN."""
    present = numbers.is_valid().to_numpy(zero_copy_only=False)
    doubles = numbers.fill_null(0.0).to_numpy()
    finite = np.isfinite(doubles)
    exponents[groups.ids[finite & (np.abs(doubles) > _LARGE)]] = _LARGE_EXPONENT
    doubles = np.where(finite, np.ldexp(doubles, -exponents[groups.ids]), np.nan)
    return pa.array(doubles, mask=~present)


def _zero_of_none(arrays: list[pa.Array], zero: Any = 0) -> list[pa.Array]:
    return [array.fill_null(zero) if array.null_count else array for array in arrays]


def _texts(values: list[Decimal | None]) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in values], pa.string())


@dataclass(frozen=True)
class Counters:
    """Rows of (group, value) or (group, counter, figure), any number per group.

    `kind`: distinct, registers or buckets.
    """

    kind: str
    type: CqlType

    def from_rows(self, values: pa.Array, groups: Groups) -> list[pa.Array]:
        ids, present = not_null(pa.array(groups.ids), normaliser(self.type)(values))
        if self.kind == "distinct":
            return self.merge([ids, present])
        if self.kind == "registers":
            return self.merge([ids, *registers_of(present)])
        buckets = buckets_of(as_doubles(present))
        return self.merge([ids, buckets, pa.array(np.ones(len(buckets), np.int64))])

    def merge(self, states: list[pa.Array]) -> list[pa.Array]:
        """Reduce to one row per pair of group and value; `states[0]` are group numbers."""
        ids: Ids = states[0].to_numpy()
        pairs = Groups.of_pairs(ids, states[1])
        firsts = pa.array(pairs.firsts)
        kept = [states[0].take(firsts), states[1].take(firsts)]
        if self.kind == "distinct":
            return kept
        how = "max" if self.kind == "registers" else "sum"
        return [*kept, *pairs.reduce((states[2], how))]


@dataclass(frozen=True)
class States:
    """States of groups: keys, the columns of each measure, and the rows of each set of counters."""

    keys: list[pa.Array]
    columns: list[list[pa.Array]]
    #: The first column of each is the index of the group, int32.
    counters: list[list[pa.Array]]
    groups_count: int

    def arrays(self) -> list[pa.Array]:
        return self.keys + [column for part in self.columns + self.counters for column in part]

    @property
    def rows_count(self) -> int:
        return self.groups_count + sum(len(part[0]) for part in self.counters)


def sum_of(cql_type: CqlType) -> Measure:
    if cql_type.name in INTEGER_BITS:
        return WholeSum()
    return FloatSum() if cql_type.name in FLOATS else ExactSum()


def extreme_of(cql_type: CqlType, how: str) -> Measure:
    if cql_type.name in EXACT_TEXTS:
        return ExactExtreme(how)
    return FloatExtreme(how) if cql_type.name in FLOATS else Extreme(how)
