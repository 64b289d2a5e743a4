"""A Celery task for each row, for workers with green threads: `celery -A bench.green_tasks`.

`BENCH_BROKER`, `BENCH_HOST`, `BENCH_PORT` and `BENCH_TABLE` say where. A worker opens its session
at its first task; `-P gevent` replaces sockets before this module is imported.
"""

from __future__ import annotations

import os
from functools import cache
from uuid import UUID

from celery import Celery

from bench.driver import open_cluster
from bench.far_seeds import Insert, Person, statements

app = Celery("bench", broker=os.environ.get("BENCH_BROKER"))
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=4,
    broker_connection_retry_on_startup=True,
    worker_send_task_events=False,
)


@cache
def _insert() -> Insert:
    session = open_cluster(os.environ["BENCH_HOST"], int(os.environ["BENCH_PORT"])).connect()
    return statements(session, os.environ["BENCH_TABLE"])


@app.task(name="bench.insert")  # type: ignore[untyped-decorator]
def insert(user_id: str, first_name: str, last_name: str) -> None:
    """Insert one row."""
    _insert()(Person(UUID(user_id), first_name, last_name))
