"""The sketches stay within their stated errors."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.query.sketches import (
    QUANTILE_ERROR,
    REGISTERS,
    bucket_of_share,
    buckets_of,
    estimate_distinct,
    value_of_bucket,
)
from tests.cases import each
from tests.unit.query.tables import ORDERS, answer, batch_of

#: The standard error of a number of distinct values.
DISTINCT_ERROR = 1.04 / math.sqrt(REGISTERS)


def test_the_stated_errors() -> None:
    assert pytest.approx(0.01625) == DISTINCT_ERROR
    assert QUANTILE_ERROR == 0.005


@pytest.mark.parametrize("count", [1, 10, 300, 5_000, 20_000, 100_000])
def test_distinct_values_of_many_sets(count: int) -> None:
    errors = []
    for seed in range(10):
        values = [seed * 10**9 + n for n in range(count)]
        batch = batch_of(ORDERS, total=values)
        (row,) = answer("select approx_distinct(total) n from shop.orders", batch)
        errors.append(row["n"] / count - 1)
    assert max(map(abs, errors)) < 4 * DISTINCT_ERROR
    assert abs(float(np.mean(errors))) < 2 * DISTINCT_ERROR / math.sqrt(10)


def test_registers_that_are_all_full() -> None:
    assert estimate_distinct(np.full(4096, 53, np.int8)) > 10**15


@each("share", ["0", "0.01", "0.5", "0.99", "0.999", "1"])
@each("spread", [0.1, 1.0, 10.0])
def test_quantiles_are_near_the_value_of_the_rank(share: str, spread: float) -> None:
    values = np.random.default_rng(5).lognormal(3, spread, 20_000)
    values[::3] *= -1
    (row,) = answer(
        f"select quantile(weight, {share}) q from shop.orders",
        batch_of(ORDERS, weight=values.tolist()),
    )
    rank = max(math.ceil(Decimal(share) * len(values)), 1)
    true = float(np.sort(values)[rank - 1])
    assert abs(row["q"] - true) <= QUANTILE_ERROR * abs(true) * (1 + 1e-9)


def test_quantiles_of_small_whole_numbers_are_exact() -> None:
    for value in range(-99, 100):
        (row,) = answer("select median(total) m from shop.orders", batch_of(ORDERS, total=[value]))
        assert row["m"] == value


def test_buckets_are_in_the_order_of_their_values() -> None:
    values = [-math.inf, -1.7e308, -5.0, -5e-324, 0.0, 5e-324, 1.0, 5.0, 1.7e308, math.inf]
    buckets = buckets_of(pa.array([*values, math.nan])).to_pylist()
    assert buckets == sorted(buckets) and len(set(buckets)) == len(buckets)
    found = [value_of_bucket(bucket, whole=False) for bucket in buckets]
    assert found[:10] == pytest.approx(values, rel=QUANTILE_ERROR, abs=5e-324)
    assert math.isnan(found[10])


def test_ranks_are_those_of_exact_shares() -> None:
    counts = np.ones(100, np.int64)
    assert bucket_of_share(counts, Decimal("0.07")) == 6
    assert bucket_of_share(counts, Decimal("0")) == 0
    assert bucket_of_share(counts, Decimal("1")) == 99
