"""Nodes that take a load's SSTables: by their storage ports, or from a folder. Pure."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from ringhaul.destination.base import Destination, Taken, UnitBounds, sstable_unit_bounds
from ringhaul.option_names import job_option
from ringhaul.sstables.layout import Layout


@dataclass(frozen=True, kw_only=True)
class Delivered(Destination):
    """A table as the nodes know it, and what its SSTables contain."""

    makes_sstables = True

    table_id: str  #: the table's UUID; it changes if the table is dropped and created again
    layout: Layout

    @abstractmethod
    def session_key(self, job_id: str) -> str:
        """Return a key by which a worker process keeps its sessions with nodes: units with the same
        key share them."""

    def unit_bounds(self, *, transformed: bool) -> UnitBounds:
        return sstable_unit_bounds(transformed=transformed)

    def summary_fields(self, taken: Taken) -> dict[str, Any]:
        return {
            "sstables": taken.sstables,
            "missed": taken.missed,
            "streamed_bytes": dict(taken.bytes_by_node),
        }

    def _stream(self, folder: str) -> dict[str, Any]:
        """Return the spec; `folder` is empty if SSTables are streamed."""
        stream = {"table_id": self.table_id, "layout": self.layout.to_json(), "folder": folder}
        return {**super().to_spec(), "stream": stream}


@dataclass(frozen=True, kw_only=True)
class Streaming(Delivered):
    """The storage ports of the nodes."""

    name = "streaming"
    verb = "streamed"
    whom = "to"

    def session_key(self, job_id: str) -> str:
        return ""

    def to_spec(self) -> dict[str, Any]:
        return self._stream("")


@dataclass(frozen=True, kw_only=True)
class Imports(Delivered):
    """A folder that the nodes share with the workers, from which they import SSTables."""

    name = "import"
    verb = "imported"
    whom = "by"

    folder: str  #: may have `{node}`

    @property
    def publishes(self) -> bool:
        return True

    def session_key(self, job_id: str) -> str:
        return job_id

    def target_text(self, table: str, consistency: str) -> str:
        return f"{super().target_text(table, consistency)}, imported from {self.folder}"

    def to_spec(self) -> dict[str, Any]:
        return self._stream(self.folder)


def delivered_from_json(data: dict[str, Any]) -> Delivered:
    """Return the destination from the value of `stream` in a spec. Raises `ValueError` for a way
    that is gone."""
    if data.get("by_sidecar"):
        raise ValueError(
            f"it loads {job_option('via')} sidecar, which this version of ringhaul does not have"
        )
    table_id, layout = data["table_id"], Layout.from_json(data["layout"])
    if folder := data.get("folder", ""):
        return Imports(table_id=table_id, layout=layout, folder=folder)
    return Streaming(table_id=table_id, layout=layout)
