"""Open the ledger for commands that look at or control a job, embedded or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from config.settings import Loaded
from producer.options.connection import LedgerPlace
from producer.request.settings import settle
from producer.services.embedded import enter_broker
from producer.startup import STEP_VARIABLE
from ringhaul.ledger.history import BY_COMMAND
from ringhaul.ledger.ledger import Ledger
from tasks.connect import open_ledger

#: Such a command does not wait half a minute for Redis.
READ_PATIENCE_MS = 5000


@contextmanager
def reading_ledger(place: LedgerPlace) -> Iterator[Ledger]:
    """Open the ledger of the broker that is configured or given, or of the embedded one. Raises as
    `settle` does."""
    with ledger_of(settings_of(place)) as ledger:
        yield ledger


def settings_of(place: LedgerPlace) -> Loaded:
    """Return the settings of a command that opens this ledger. Raises as `settle` does."""
    return settle({"broker.url": place.broker}, place.config_file)


@contextmanager
def ledger_of(loaded: Loaded) -> Iterator[Ledger]:
    """Open the ledger of these settings, which were read before."""
    with ExitStack() as stack:
        loaded, _ = enter_broker(stack, loaded)
        yield open_ledger(loaded.settings, READ_PATIENCE_MS)


def on_behalf_of() -> str:
    """Return for whom this command acts, for the history of jobs: `schedule NAME` or `command`."""
    schedule = os.environ.get(STEP_VARIABLE)
    return f"schedule {schedule}" if schedule else BY_COMMAND
