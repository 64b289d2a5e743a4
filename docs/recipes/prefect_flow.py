"""Prefect: load a day's orders, verify them, and log what was rejected.

python prefect_flow.py 2026-01-31
"""

from __future__ import annotations

import os
import sys
from typing import Any

from prefect import flow, get_run_logger, task

from ringhaul.client import Client, ClientError, every

FOLDER = os.environ.get("ETL_FOLDER", "/data/orders")
TABLE = os.environ.get("ETL_TABLE", "shop.orders")
#: The `ringhaul` of another environment, such as /opt/ringhaul/bin/ringhaul. None: of Prefect's.
client = Client(command=os.environ.get("ETL_COMMAND"))


def may_help(task: Any, run: Any, state: Any) -> bool:
    """Retry only what may succeed later."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, ClientError) and error.transient


@task(retries=3, retry_delay_seconds=300, retry_condition_fn=may_help)
def load(day: str) -> int:
    logger = get_run_logger()
    result = client.load(
        f"{FOLDER}/{day}.csv",
        TABLE,
        job_id=f"orders-{day}",
        max_errors="1%",
        progress=every(30, lambda p: logger.info("%.0f%%, %d rows", 100 * p.done, p.rows)),
    )
    for reject in client.job(result.job).rejects(limit=20):
        logger.warning("%s:%s %s: %s", reject.file, reject.line, reject.column, reject.reason)
    return result.rows


@task
def verify(day: str) -> int:
    """Compare the table with the file. Records that cannot be loaded are no difference."""
    found = client.verify(f"{FOLDER}/{day}.csv", TABLE, max_errors=-1)
    if found.missing or found.differing:
        raise RuntimeError(found.problem())
    return found.rows


@flow
def orders(day: str) -> int:
    rows = load(day)
    return min(rows, verify(day))


if __name__ == "__main__":
    orders(sys.argv[1])
