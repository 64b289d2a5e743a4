"""What a destination's planner is given, and what it does: one `Way` for each destination."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from config.settings import Settings
from producer.request.destination import Wanted
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.view import ClusterView, TableStorage
from ringhaul.destination.base import Destination
from ringhaul.records.job import LoadSource

if TYPE_CHECKING:
    from ringhaul.ledger.reading import Reader

D = TypeVar("D", bound=Destination)


@dataclass(frozen=True, kw_only=True)
class LoadFacts:
    """The load whose destination is planned, and the cluster that it is for."""

    wanted: Wanted
    table: TableSchema
    sources: Sequence[LoadSource]
    ttl_s: int  #: seconds for rows without their own; 0: the table's default
    input_bytes: int
    processes: int  #: worker processes that write at a time
    cluster: ClusterView
    settings: Settings

    @property
    def storage(self) -> TableStorage:
        """How the nodes store the table."""
        return self.cluster.storage(self.table.keyspace, self.table.table)


class Way(ABC, Generic[D]):
    """How loads with one kind of destination are planned, and published at their end."""

    @abstractmethod
    def plan(self, facts: LoadFacts) -> D:
        """Return the destination.

        Raises `UsageError` for a table or an input that it does not take, `SetupUnusable` for a
        cluster that it does not reach, `ClusterError` for a user who may not write to the table,
        and `OutputUnusable` for folders on a disk that is too full.
        """

    def publish(self, ledger: Reader, job_id: str, destination: D) -> None:
        """Publish the end of a complete job. Safe to repeat. Raises `OutputUnusable`."""
