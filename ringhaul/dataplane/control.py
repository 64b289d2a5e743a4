"""A control write: whether the replicas of a row take any write to its key.

An UPDATE of the row's key whose only value is unset. It takes the whole way of a write (commit log,
memtable, indexes, acknowledgements) and changes nothing: no row appears, no value is touched.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cassandra import DriverException, InvalidRequest, Unauthorized
from cassandra.cluster import NoHostAvailable, Session
from cassandra.metadata import TableMetadata
from cassandra.protocol import ErrorMessage
from cassandra.query import UNSET_VALUE, BoundStatement, PreparedStatement

from ringhaul.cluster.schema import quote_identifier

log = logging.getLogger(__name__)

#: A control write that takes longer than a node's own time-out of writes (2 s) failed.
TIMEOUT_S = 5.0
#: Where values can be unset.
_UNSET_SINCE = 4


class Control:
    """Makes control writes for the rows of one statement."""

    def __init__(self, session: Session, prepared: PreparedStatement, consistency: int) -> None:
        self._session, self._prepared, self._consistency = session, prepared, consistency
        self._control: PreparedStatement | None = None
        self._places: list[int] | None = None  # of the key's columns among the statement's values

    def take(self, values: Sequence[bytes | None]) -> bool | None:
        """Whether the row's replicas take a write. `values`: as the statement binds them.

        None: no such write can be made (a value of the key is not bound, or nothing but the key is
        in the table, or this user may not). Blocks for `TIMEOUT_S` at most.
        """
        try:
            if self._control is None and not self._prepare():
                return None
        except (DriverException, NoHostAvailable, ErrorMessage) as error:
            log.info("no control write can be made: %s", error)
            return None
        try:
            assert self._control is not None and self._places is not None
            key = [values[place] for place in self._places]
            if None in key:
                return None
            bound = BoundStatement(self._control, consistency_level=self._consistency)
            bound.values = [UNSET_VALUE, *key]
            self._session.execute(bound, timeout=TIMEOUT_S)
        except (InvalidRequest, Unauthorized):
            return None
        except (DriverException, NoHostAvailable, ErrorMessage, OSError) as error:
            log.warning("not even a write that changes nothing got through: %s", error)
            return False
        return True

    def _prepare(self) -> bool:
        """Prepare the UPDATE, if there can be one."""
        markers = self._prepared.column_metadata
        if not markers or self._session.cluster.protocol_version < _UNSET_SINCE:
            return False
        table = self._table(markers[0].keyspace_name, markers[0].table_name)
        if table is None:
            return False
        key = [column.name for column in table.primary_key]
        bound = {marker.name: place for place, marker in reversed(list(enumerate(markers)))}
        rest = [
            name
            for name, column in table.columns.items()
            if name not in key and not column.is_static and column.cql_type != "counter"
        ]
        if not rest or not all(name in bound for name in key):
            return False
        where = " AND ".join(f"{quote_identifier(name)} = ?" for name in key)
        self._control = self._session.prepare(
            f"UPDATE {quote_identifier(table.keyspace_name)}.{quote_identifier(table.name)} "
            f"SET {quote_identifier(rest[0])} = ? WHERE {where}"
        )
        self._places = [bound[name] for name in key]
        return True

    def _table(self, keyspace: str, name: str) -> TableMetadata | None:
        """The table as the driver knows it. A session hears of new tables late."""
        cluster = self._session.cluster
        for refresh in (False, True):
            if refresh:
                cluster.refresh_table_metadata(keyspace, name)
            known = cluster.metadata.keyspaces.get(keyspace)
            table: TableMetadata | None = known and known.tables.get(name)
            if table is not None:
                return table
        return None
