"""Options that commands without a record of their own share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from producer.commands.click_options import Command, record_options
from producer.options.connection import Connection, LedgerPlace
from producer.options.job import Showing

#: Where the cluster and the broker are.
connection_options = record_options(Connection)
#: `--config FILE`, for commands that read settings.
config_option = record_options(Connection, only="config_file")
#: `--report FILE|DIR`, for commands that show a job.
report_option = record_options(Showing, only="report")


def ledger_options(command: Command) -> Command:
    """Add options for commands that look at or control a job, `--broker` and `--config`. The
    command gets them as a `LedgerPlace`, its parameter `place`."""

    @wraps(command)
    def run(broker: str | None, config_file: Path | None, **options: Any) -> Any:
        return command(place=LedgerPlace(broker=broker, config_file=config_file), **options)

    decorated: Callable[..., Any] = record_options(LedgerPlace)(run)
    return decorated  # type: ignore[return-value]
