"""The groups of options on help pages."""

from __future__ import annotations

from enum import Enum


class Group(Enum):
    """The heading of a group. Groups are shown in this order."""

    ROWS = "Rows"
    NEW_TABLE = "New table"
    SSTABLES = "SSTables"
    TRIALS = "Trials"
    OUTPUT = "Output"
    FORMAT = "Format"
    VALUES = "Values"
    INPUT = "Format of the input"
    JOB = "Job"
    DISPLAY = "Display"
    CLUSTER = "Cluster and broker"
    OTHER = "Options"

    @property
    def rank(self) -> int:
        """The group's place on a help page, from 0."""
        return _RANKS[self]


_RANKS = {group: rank for rank, group in enumerate(Group)}
