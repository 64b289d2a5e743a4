"""Dagster: each day's orders as a partition of an asset, and a summary that depends on it."""

import os

import dagster as dg

from ringhaul.client import Client, ClientError, every

FOLDER = os.environ.get("ETL_FOLDER", "/data/orders")
TABLE = os.environ.get("ETL_TABLE", "shop.orders")
#: The `ringhaul` of another environment, such as /opt/ringhaul/bin/ringhaul. None: of Dagster's.
client = Client(command=os.environ.get("ETL_COMMAND"))
days = dg.DailyPartitionsDefinition(start_date="2026-01-01")


@dg.asset(partitions_def=days)
def orders(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """One day's orders in Cassandra. Repeating a partition continues its job."""
    day = context.partition_key
    try:
        result = client.load(
            f"{FOLDER}/{day}.csv",
            TABLE,
            job_id=f"orders-{day}",
            max_errors="1%",
            progress=every(30, lambda p: context.log.info("%.0f%%, %d rows", 100 * p.done, p.rows)),
        )
    except ClientError as error:
        if error.transient:
            raise dg.RetryRequested(max_retries=3, seconds_to_wait=300) from error
        raise dg.Failure(str(error), allow_retries=False) from error
    return dg.MaterializeResult(
        metadata={"job": result.job, "rows": result.rows, "rejected": result.rejected}
    )


@dg.asset(deps=[orders])
def orders_by_region() -> dg.MaterializeResult:
    """Orders and totals of each region, as an Arrow table."""
    table = client.query(f"SELECT region, count(*) AS orders FROM {TABLE} GROUP BY region")
    return dg.MaterializeResult(metadata={"regions": table.to_pylist()})


definitions = dg.Definitions(assets=[orders, orders_by_region])
