"""The connection to the ledger's Redis, by the settings."""

from __future__ import annotations

from pathlib import Path

from config.broker import broker_url
from config.settings import Settings
from ringhaul.ledger.connection import PATIENCE_MS, SOCKET_TIMEOUT_S, connect
from ringhaul.ledger.ledger import Ledger

#: The worker's parent process serves all its children: it must not wait long for an absent Redis.
PARENT_PATIENCE_MS = 1000


def open_ledger(
    settings: Settings, patience_ms: int | None = None, *, timeout_s: float | None = None
) -> Ledger:
    """Return the ledger in the broker's Redis; it connects on first use.

    `patience_ms`: how long a call retries while Redis is unavailable; None: the default.
    `timeout_s`: how long it waits for one answer; None: the default.
    """
    broker = settings.broker
    client = connect(
        broker_url(broker),
        tls_ca=_text(broker.tls_ca),
        tls_cert=_text(broker.tls_cert),
        tls_key=_text(broker.tls_key),
        timeout_s=SOCKET_TIMEOUT_S if timeout_s is None else timeout_s,
    )
    return Ledger(
        client,
        unclaimed_ms=int(settings.worker.unclaimed_s * 1000),
        patience_ms=PATIENCE_MS if patience_ms is None else patience_ms,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
