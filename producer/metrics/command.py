"""`ringhaul metrics`: serve metrics for Prometheus."""

from __future__ import annotations

import rich_click as click

from producer.commands.options import ledger_options
from producer.options.connection import LedgerPlace


@click.command("metrics")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=5556,
    show_default=True,
    help="Port to listen on; 0: any that is free.",
)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Address to listen on; no log-in."
)
@ledger_options
def metrics_command(port: int, address: str, place: LedgerPlace) -> int:
    """Serve metrics for Prometheus at /metrics, without Flower.

    They are computed from the ledger at each scrape, as for Flower's own /metrics page.
    """
    from producer.metrics.run import serve_metrics

    return serve_metrics(place, address, port)
