"""What every destination of a load answers. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple


class UnitBounds(NamedTuple):
    """How large the units of a load get."""

    units_per_slot: int  #: units for each worker process, at least
    bytes_max: int
    paced_bytes_min: int  #: the smallest unit under a limit on bytes


class Taken(NamedTuple):
    """The SSTables of a load's committed units."""

    sstables: int
    missed: int  #: replicas that did not take some rows, counted once for each unit
    bytes_by_node: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Destination(ABC):
    """Where the rows of a load go."""

    #: The destination's name, by which the code that plans and runs it is found.
    name: ClassVar[str]
    #: Whether units make SSTables instead of requests.
    makes_sstables: ClassVar[bool] = False
    #: Whether rows of units that were cut short are in the table.
    keeps_parts: ClassVar[bool] = True
    #: What happens to the SSTables at the nodes, for people; empty: nothing.
    verb: ClassVar[str] = ""
    #: The preposition between `verb` and the nodes.
    whom: ClassVar[str] = ""

    @property
    def publishes(self) -> bool:
        """Whether the end of the job needs a command."""
        return False

    @abstractmethod
    def unit_bounds(self, *, transformed: bool) -> UnitBounds:
        """Return the bounds of units. `transformed`: records go through transforms."""

    def target_text(self, table: str, consistency: str) -> str:
        """Return where rows go, for people."""
        return f"{table} at {consistency}"

    def folder_of(self, job_id: str, *, complete: bool) -> str:
        """Return the folder of the written files; empty if rows go to the cluster. `complete`: the
        job is complete and published."""
        return ""

    def summary_fields(self, taken: Taken) -> dict[str, Any]:
        """Return what the summary says about the SSTables, for programs."""
        return {}

    def to_spec(self) -> dict[str, Any]:
        """Return the destination's part of the job's spec."""
        return {"sstables": None, "stream": None}


#: Bounds of units that make SSTables. Each unit makes at least one, and few are better than many;
#: the largest unit takes some minutes.
SSTABLE_UNIT_BYTES_MAX = 1 << 30
#: The largest unit with transforms, which may take 100 us a row: a unit must end before its time
#: limit.
SSTABLE_UNIT_BYTES_TRANSFORMED = 128 << 20
#: The smallest unit under a limit on bytes: many small files would cost the nodes more than the
#: limit saves them.
SSTABLE_UNIT_BYTES_PACED_MIN = 256 << 20


def sstable_unit_bounds(*, transformed: bool) -> UnitBounds:
    """Return the bounds of units that make SSTables."""
    most = SSTABLE_UNIT_BYTES_TRANSFORMED if transformed else SSTABLE_UNIT_BYTES_MAX
    return UnitBounds(1, most, SSTABLE_UNIT_BYTES_PACED_MIN)
