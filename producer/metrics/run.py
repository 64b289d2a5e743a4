"""Run `ringhaul metrics` until it is stopped."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from types import FrameType

from prometheus_client import CollectorRegistry

from config.logs import set_up_logging
from config.settings import Settings
from producer.metrics.collector import register
from producer.metrics.server import MetricsServer
from producer.options.connection import LedgerPlace
from producer.services.embedded import enter_broker
from producer.services.ledger import settings_of
from producer.startup import stay
from ringhaul.errors import EXIT_COMPLETE
from ringhaul.plain_text import as_line


def serve_metrics(place: LedgerPlace, address: str, port: int) -> int:
    """Serve the metrics until SIGTERM or Ctrl-C; return the exit code."""
    loaded = settings_of(place)
    stay()
    with ExitStack() as stack:
        loaded, _ = enter_broker(stack, loaded)
        _serve(loaded.settings, address, port)
    return EXIT_COMPLETE


def _serve(settings: Settings, address: str, port: int) -> None:
    set_up_logging(settings.logging, plain=as_line)
    registry = CollectorRegistry()
    register(settings, registry)
    with MetricsServer(address, port, registry) as server:
        signal.signal(signal.SIGTERM, _interrupt)
        print(f"metrics are at {server.url}", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
