"""`/metrics` in place of Flower's: its figures, and the ledger's, which a thread reads."""

from __future__ import annotations

from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from producer.web.page import Handler


class MetricsPage(Handler):
    """`/metrics`, which needs no log-in, like Flower's own."""

    async def get(self) -> None:
        """Send all metrics of this process and of the ledger."""
        application: Any = self.application  # Flower's
        application.purge_offline_worker_metrics()
        # The collector of the ledger asks Redis, which Flower's own handler would wait for.
        text = await self.look(lambda _: generate_latest())
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.finish(text)
