"""The collector that reads the ledger at each scrape. Flower's `/metrics` and ours register it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from config.settings import Settings
from producer.metrics.exposition import duration, metrics_of, up
from producer.metrics.figures import NeverLess
from producer.metrics.scrape import Looker
from ringhaul.errors import RinghaulError
from ringhaul.ledger.ledger import Ledger
from tasks.connect import open_ledger

log = logging.getLogger(__name__)

#: How long one answer of Redis may take: a server that hangs must not keep a scrape waiting.
ANSWER_S = 2.0


class LedgerCollector(Collector):
    """Reads the ledger at each scrape, one scrape at a time, and never raises.

    While Redis does not answer, `ringhaul_up` is 0 and there are no other figures: old figures
    would look current.
    """

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        """`ledger`: a ledger with little patience, see `register`."""
        self._looker = Looker(ledger, settings)
        self._jobs = settings.metrics.jobs
        self._sums = NeverLess()
        self._lock = threading.Lock()
        self._trouble = ""

    def describe(self) -> Iterator[Metric]:
        """Return no names, so that registration needs no Redis."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of this moment."""
        with self._lock:
            began = time.monotonic()
            try:
                figures = self._looker.look()
                totals = self._sums.totals(figures.totals)
                found = list(metrics_of(figures, totals, jobs=self._jobs))
                trouble = self._looker.file_problem
            except RinghaulError as error:
                found, trouble = [], str(error)
            except Exception:
                log.exception("the ledger could not be read for metrics")
                found, trouble = [], self._trouble
            if trouble and trouble != self._trouble:
                log.warning("metrics: %s", trouble)
            self._trouble = trouble
        yield up(int(bool(found)))
        yield duration(time.monotonic() - began)
        yield from found


def register(settings: Settings, registry: CollectorRegistry = REGISTRY) -> LedgerCollector:
    """Add the metrics of the ledger to a registry; return the collector. Connects at a scrape.

    `settings`: the settings, with the address of the broker, even if it is embedded.
    """
    collector = LedgerCollector(open_ledger(settings, 0, timeout_s=ANSWER_S), settings)
    registry.register(collector)
    return collector
