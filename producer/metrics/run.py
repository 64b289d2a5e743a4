"""Run `ringhaul metrics` until it is stopped."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from prometheus_client import CollectorRegistry

from config.logs import set_up_logging
from config.settings import Settings
from producer.metrics.collector import register
from producer.metrics.server import MetricsServer
from producer.request.settings import is_embedded, settle
from producer.services.embedded import EmbeddedBroker
from producer.startup import stay
from ringhaul.errors import EXIT_COMPLETE
from ringhaul.plain_text import as_line


def serve_metrics(config_file: Path | None, address: str, port: int) -> int:
    """Serve the metrics until SIGTERM or Ctrl-C; return the exit code."""
    loaded = settle({}, config_file)
    stay()
    with ExitStack() as stack:
        settings = loaded.settings
        if is_embedded(loaded):
            broker = stack.enter_context(EmbeddedBroker(settings.state_dir))
            settings = broker.in_settings(settings)
        _serve(settings, address, port)
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
