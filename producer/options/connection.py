"""Options for where the cluster and the broker are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from producer.options.cqlshrc import Cqlshrc

#: A `--broker` that turns off the configured broker and all its settings.
NO_BROKER = "none"


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the cluster and the broker are. None: as configured."""

    contact_points: str | None
    port: int | None
    local_dc: str | None
    user: str | None
    password_file: str | None
    broker: str | None
    config_file: Path | None
    cqlshrc: Cqlshrc | None = None
    secure_connect_bundle: str | None = None
