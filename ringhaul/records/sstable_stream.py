"""What a load that streams SSTables sends, as part of its spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringhaul.sstables.layout import Layout


@dataclass(frozen=True, kw_only=True)
class SSTableStream:
    """A table as the nodes know it, and what its SSTables contain."""

    table_id: str  #: UUID; another one after the table was dropped and created again
    layout: Layout

    def to_json(self) -> dict[str, Any]:
        return {"table_id": self.table_id, "layout": self.layout.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SSTableStream:
        return cls(table_id=data["table_id"], layout=Layout.from_json(data["layout"]))
