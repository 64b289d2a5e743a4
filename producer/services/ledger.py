"""The ledger for commands that look at or steer a job, embedded or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.settings import Loaded
from producer.request.settings import is_embedded, settle
from producer.services.embedded import EmbeddedBroker
from producer.startup import STEP_VARIABLE
from ringhaul.ledger.history import BY_COMMAND
from ringhaul.ledger.ledger import Ledger
from tasks.connect import open_ledger

#: A command that only looks does not wait half a minute for an absent Redis.
READ_PATIENCE_MS = 5000


@contextmanager
def reading_ledger(config_file: Path | None) -> Iterator[Ledger]:
    """The ledger of the configured broker, or of the embedded one."""
    with ledger_of(settle({}, config_file)) as ledger:
        yield ledger


@contextmanager
def ledger_of(loaded: Loaded) -> Iterator[Ledger]:
    """The same with settings that were read before."""
    if not is_embedded(loaded):
        yield open_ledger(loaded.settings, READ_PATIENCE_MS)
        return
    with EmbeddedBroker(loaded.settings.state_dir) as broker:
        yield open_ledger(broker.in_settings(loaded.settings), READ_PATIENCE_MS)


def on_behalf_of() -> str:
    """Return for whom this command acts, for the history of jobs: `schedule NAME` or `command`."""
    schedule = os.environ.get(STEP_VARIABLE)
    return f"schedule {schedule}" if schedule else BY_COMMAND
