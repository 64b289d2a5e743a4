"""Airflow: load each day's orders, then count what the table holds."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

from ringhaul.client import Client, ClientError, every

FOLDER = os.environ.get("ETL_FOLDER", "/data/orders")
TABLE = os.environ.get("ETL_TABLE", "shop.orders")
#: The `ringhaul` of another environment, such as /opt/ringhaul/bin/ringhaul. None: of Airflow's.
client = Client(command=os.environ.get("ETL_COMMAND"))


@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, tags=["orders"])
def orders():
    @task(retries=3, retry_delay=timedelta(minutes=5))
    def load(ds: str | None = None) -> int:
        """Load one day. A retry continues the job of the day: its id follows from the date."""
        try:
            result = client.load(
                f"{FOLDER}/{ds}.csv",
                TABLE,
                job_id=f"orders-{ds}",
                max_errors="1%",
                progress=every(30, lambda p: print(f"{p.done:.0%}, {p.rows:,} rows")),
                timeout=3 * 3600,
            )
        except ClientError as error:
            if error.transient:
                raise  # Airflow tries again
            raise AirflowFailException(str(error)) from error
        for reject in client.job(result.job).rejects(limit=20):
            print(f"{reject.file}:{reject.line} {reject.column}: {reject.reason}")
        return result.rows

    @task
    def report(rows: int) -> int:
        total = client.count(TABLE)
        print(f"{rows:,} rows loaded, {total:,} in the table")
        return total

    report(load())


made = orders()
