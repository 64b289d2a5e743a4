"""What a load that brings SSTables to nodes makes, as part of its spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringhaul.sstables.layout import Layout


@dataclass(frozen=True, kw_only=True)
class SSTableStream:
    """A table as the nodes know it, and what its SSTables contain."""

    table_id: str  #: UUID; another one after the table was dropped and created again
    layout: Layout
    #: From which nodes import the SSTables; may have `{node}`. Empty: they are streamed.
    folder: str = ""

    @property
    def is_imported(self) -> bool:
        """Whether nodes import the SSTables from a folder."""
        return bool(self.folder)

    @property
    def verb(self) -> str:
        """What happens to the SSTables, for people."""
        return "imported" if self.is_imported else "streamed"

    def to_json(self) -> dict[str, Any]:
        return {
            "table_id": self.table_id,
            "layout": self.layout.to_json(),
            "folder": self.folder,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SSTableStream:
        """Return what `to_json` made. Raises `ValueError` for a way that is gone."""
        if data.get("by_sidecar"):
            raise ValueError("it loads --via sidecar, which this version of ringhaul does not have")
        return cls(
            table_id=data["table_id"],
            layout=Layout.from_json(data["layout"]),
            folder=data.get("folder", ""),
        )
