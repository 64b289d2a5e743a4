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
    #: From which nodes import the SSTables; may have `{node}`. Empty: see `by_sidecar`.
    folder: str = ""
    #: Nodes import the SSTables through their Sidecars. Otherwise they are streamed.
    by_sidecar: bool = False

    @property
    def is_imported(self) -> bool:
        """Whether nodes import the SSTables, from a folder or through their Sidecars."""
        return bool(self.folder) or self.by_sidecar

    @property
    def verb(self) -> str:
        """What happens to the SSTables, for people."""
        return "imported" if self.is_imported else "streamed"

    def to_json(self) -> dict[str, Any]:
        return {
            "table_id": self.table_id,
            "layout": self.layout.to_json(),
            "folder": self.folder,
            "by_sidecar": self.by_sidecar,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SSTableStream:
        return cls(
            table_id=data["table_id"],
            layout=Layout.from_json(data["layout"]),
            folder=data.get("folder", ""),
            by_sidecar=data.get("by_sidecar", False),
        )
