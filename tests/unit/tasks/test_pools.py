"""Pools in which units can run."""

from __future__ import annotations

import pytest
from celery.concurrency import get_implementation

from ringhaul.errors import UsageError
from tasks.pools import check_pool, pool_name


@pytest.mark.parametrize(
    ("given", "pool"), [("prefork", "prefork"), ("processes", "prefork"), ("solo", "solo")]
)
def test_pools_that_work(given: str, pool: str) -> None:
    assert check_pool(given) == pool
    assert check_pool(pool_name(get_implementation(given))) == pool
    assert pool_name(None) == "prefork"


@pytest.mark.parametrize("name", ["threads", "gevent", "eventlet", "custom", "my.module:Pool"])
def test_others_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UsageError, match=f"^--pool {name}: .+ Use prefork"):
        check_pool(name)
