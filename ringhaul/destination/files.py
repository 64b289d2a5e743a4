"""A folder in which a load puts SSTables, and how the files are named there. Pure."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ringhaul.destination.base import Destination, Taken, UnitBounds, sstable_unit_bounds
from ringhaul.sstables.layout import Layout

#: SSTables of one unit; their numbers follow each other. Cassandra keeps a number in 31 bits, so a
#: job may have two million units.
SSTABLES_A_UNIT_MAX = 1000
#: Holds what running jobs have written, in a folder for each job.
_STAGED = ".ringhaul"


@dataclass(frozen=True, kw_only=True)
class Files(Destination):
    """A folder for SSTables, and what they contain.

    Each attempt of a unit writes to its own folder below `staged`. When the job is complete,
    the files of the attempts that count are moved to `final`.
    """

    name = "files"
    makes_sstables = True
    keeps_parts = False

    folder: str  #: absolute
    keyspace: str
    table: str
    layout: Layout

    @property
    def publishes(self) -> bool:
        return True

    @property
    def final(self) -> str:
        """The folder that `nodetool import` and `sstableloader` take."""
        return os.path.join(self.folder, self.keyspace, self.table)

    def staged(self, job_id: str) -> str:
        """Return the folder of a job's unfinished files; on the same file system as `final`."""
        return os.path.join(self.folder, _STAGED, job_id)

    def attempt_folder(self, job_id: str, unit: int, attempt: int, worker: str) -> str:
        """Return the folder of one attempt. `worker`: host:pid, which distinguishes attempts that
        have the same number because Redis forgot an attempt."""
        name = f"{unit}-{attempt}-{worker.replace(':', '-').replace(os.sep, '-')}"
        return os.path.join(self.staged(job_id), name)

    def unit_bounds(self, *, transformed: bool) -> UnitBounds:
        return sstable_unit_bounds(transformed=transformed)

    def target_text(self, table: str, consistency: str) -> str:
        return f"SSTables of {table} in {self.final}"

    def folder_of(self, job_id: str, *, complete: bool) -> str:
        return self.final if complete else self.staged(job_id)

    def summary_fields(self, taken: Taken) -> dict[str, Any]:
        return {"sstables": taken.sstables}

    def to_spec(self) -> dict[str, Any]:
        files = {
            "folder": self.folder,
            "keyspace": self.keyspace,
            "table": self.table,
            "layout": self.layout.to_json(),
        }
        return {**super().to_spec(), "sstables": files}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Files:
        """Return the destination from the value of `sstables` in a spec."""
        return cls(**{**data, "layout": Layout.from_json(data["layout"])})


def first_number(unit: int) -> int:
    """Return the number of a unit's first SSTable: no two units share a number."""
    return unit * SSTABLES_A_UNIT_MAX + 1
