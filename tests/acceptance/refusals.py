"""Assertions for a refused load: one message, no job, no row written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis
from cassandra.cluster import Session

COLUMNS = "id int PRIMARY KEY, name text, total int"


@contextmanager
def nothing_started(session: Session, table: str, broker_url: str) -> Iterator[None]:
    """Assert that the block creates no job and writes no row into `table`, which is empty."""
    with redis.Redis.from_url(broker_url) as client:
        jobs = client.zrange("ringhaul:jobs", 0, -1)
        yield
        assert client.zrange("ringhaul:jobs", 0, -1) == jobs
    assert session.execute(f"SELECT * FROM {table}").all() == []
