"""Control writes: test whether the replicas of a row accept any write to its key.

A control write is an UPDATE of the row's key whose only value is unset. It takes the path of any
write (commit log, memtable, indexes, acknowledgements) and changes nothing: no row appears, no
value is touched.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from cassandra import DriverException, InvalidRequest, Unauthorized
from cassandra.cluster import NoHostAvailable, Session
from cassandra.metadata import TableMetadata
from cassandra.protocol import ErrorMessage
from cassandra.query import UNSET_VALUE, BoundStatement, PreparedStatement

from ringhaul.cluster.schema import quote_identifier
from ringhaul.dataplane.blame import Controlled

log = logging.getLogger(__name__)

#: A control write that takes longer than a node's own write timeout (2 s) has failed.
TIMEOUT_S = 5.0
#: The first protocol version with unset values.
_UNSET_SINCE = 4


class Control:
    """Makes control writes for the rows of one statement."""

    def __init__(self, session: Session, prepared: PreparedStatement, consistency: int) -> None:
        self._session, self._prepared, self._consistency = session, prepared, consistency
        self._control: PreparedStatement | None = None
        self._places: list[int] | None = None  # positions of the key columns among the bound values

    def take(self, values: Sequence[bytes | None]) -> Controlled:
        """Test whether the row's replicas accept a write. `values`: what the statement binds.

        It is impossible if a value of the key is not bound, the table has only key columns, or this
        user lacks the permission. Blocks for `TIMEOUT_S` at most.
        """
        return Controlled(self._take(values), time.monotonic())

    def _take(self, values: Sequence[bytes | None]) -> bool | None:
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
        """Prepare the UPDATE; return whether that is possible."""
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
        """Return the table's metadata, refreshed if needed: sessions learn of new tables late."""
        cluster = self._session.cluster
        for refresh in (False, True):
            if refresh:
                cluster.refresh_table_metadata(keyspace, name)
            known = cluster.metadata.keyspaces.get(keyspace)
            table: TableMetadata | None = known and known.tables.get(name)
            if table is not None:
                return table
        return None
