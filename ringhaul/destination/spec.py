"""Read the destination of a load from its spec. Pure."""

from __future__ import annotations

from typing import Any

from ringhaul.destination.base import Destination
from ringhaul.destination.cql import Cql
from ringhaul.destination.delivered import delivered_from_json
from ringhaul.destination.files import Files


def destination_of(spec: dict[str, Any]) -> Destination:
    """Return the destination that `Destination.to_spec` wrote into the spec of a load. Raises
    `ValueError` for a destination that this version does not have."""
    if spec["sstables"] is not None:
        return Files.from_json(spec["sstables"])
    stream = spec.get("stream")
    return Cql() if stream is None else delivered_from_json(stream)
