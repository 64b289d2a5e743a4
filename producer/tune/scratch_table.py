"""A table beside the user's own, of the same schema, that is dropped when its command ends."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from contextlib import suppress

from cassandra import DriverException, Unauthorized
from cassandra.cluster import NoHostAvailable, Session
from cassandra.metadata import IndexMetadata, Metadata, TableMetadata
from cassandra.protocol import ErrorMessage

from config.settings import Settings
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.cluster.tables import find_table
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import ClusterError, ClusterUnavailable
from tasks.cluster_settings import cluster_config

#: Prefix of scratch tables' names; the name of the run follows.
PREFIX = "ringhaul_tune_"
#: A node that is busy with other schema changes takes seconds.
CREATE_TIMEOUT_S = 30.0
AGREEMENT_TIMEOUT_S = 20.0
#: The least time for dropping it, however late it is.
DROP_TIMEOUT_S = 3.0
#: Options that the scratch table does not take over, with its own values: its rows belong to no
#: user, so no consumer of changes must see them, and no snapshot is worth its disk.
_OWN_OPTIONS = {"cdc": "false", "allow_auto_snapshot": "false", "incremental_backups": "false"}
_REFUSED = (DriverException, NoHostAvailable, ErrorMessage)


class NotDropped(ClusterError):
    """The scratch table is still there."""


class ScratchTable:
    """The scratch table of one run. `create` it; `drop` it whatever has happened meanwhile."""

    def __init__(self, session: Session, settings: Settings, like: TableSchema, run: str) -> None:
        self._session, self._settings, self._like = session, settings, like
        self._table = f"{PREFIX}{run}"
        self._wanted = False

    @property
    def name(self) -> str:
        """Return `keyspace.table`."""
        return f"{self._like.keyspace}.{self._table}"

    def create(self) -> TableSchema:
        """Create the table and its indexes, and wait until all nodes know them.

        Raises `ClusterError` if the user may not, with what to grant, and as `translate_error`.
        """
        metadata = self._session.cluster.metadata
        like = metadata.keyspaces[self._like.keyspace].tables[self._like.table]
        create, *indexes = create_statements(like, self._table, _known_options(metadata))
        self._wanted = True  # however this ends: a time-out may come after the server has done it
        try:
            try:
                self._session.execute(create, timeout=CREATE_TIMEOUT_S)
            except Unauthorized as error:
                self._wanted = False
                raise ClusterError(self._not_allowed(error)) from error
            for index in indexes:
                self._session.execute(index, timeout=CREATE_TIMEOUT_S)
            self._session.cluster.refresh_table_metadata(self._like.keyspace, self._table)
        except _REFUSED as error:
            raise self._translated(error) from error
        connection = self._session.cluster.control_connection
        if not connection.wait_for_schema_agreement(wait_time=AGREEMENT_TIMEOUT_S):
            raise ClusterUnavailable(
                "not all nodes know the scratch table: run the command again when `ringhaul doctor`"
                " sees one schema"
            )
        return find_table(DriverView(self._session), self._like.keyspace, self._table)

    def drop(self, by_s: float) -> None:
        """Drop the table, if it was created, until `by_s` on the monotonic clock.

        Raises `NotDropped`, with the statement.
        """
        if not self._wanted:
            return
        statement = drop_statement(self._like.keyspace, self._table)
        try:
            timeout_s = max(by_s - time.monotonic(), DROP_TIMEOUT_S)
            self._session.execute(statement, timeout=timeout_s)
        except _REFUSED as error:
            raise NotDropped(
                f"the scratch table {self.name} could not be dropped: {self._translated(error)}. "
                f"When the cluster works again, run: {statement};"
            ) from error
        self._wanted = False

    def _not_allowed(self, error: Unauthorized) -> str:
        user = self._settings.cluster.user or "the user"
        keyspace = quote_identifier(self._like.keyspace)
        return (
            f"{user} may not create a scratch table in {self._like.keyspace} ({error.args[0]}): "
            f"GRANT CREATE ON KEYSPACE {keyspace} TO {user}, or load into {self._like.name} itself "
            "with --in-place"
        )

    def _translated(self, error: BaseException) -> BaseException:
        config = cluster_config(self._settings)
        return translate_error(error, where=config.where, user=config.user)


def left_behind(cluster: ClusterView, keyspace: str) -> Sequence[str]:
    """Return statements that drop the scratch tables of other runs, which may have been killed."""
    found = cluster.keyspace(keyspace)
    tables = found.tables if found else ()
    return [drop_statement(keyspace, name) for name in sorted(tables) if name.startswith(PREFIX)]


def drop_statement(keyspace: str, table: str) -> str:
    """Return the statement that drops a scratch table."""
    return f"DROP TABLE IF EXISTS {quote_identifier(keyspace)}.{quote_identifier(table)}"


def create_statements(like: TableMetadata, table: str, known: Sequence[str]) -> list[str]:
    """Return statements that create a table like another one, with its indexes.

    Views and triggers are left out. `known`: the options of tables that the cluster has.
    """
    scratch = copy.copy(like)
    scratch.name, scratch.indexes, scratch.views, scratch.triggers = table, {}, {}, {}
    scratch.options = {k: v for k, v in like.options.items() if k not in (*_OWN_OPTIONS, "comment")}
    statement = str(scratch.as_cql_query())
    joined = " AND " if " WITH " in statement else " WITH "
    own = [f"{name} = {value}" for name, value in _OWN_OPTIONS.items() if name in known]
    own.append("comment = 'scratch table of ringhaul tune, to be dropped'")
    statements = [statement + joined + " AND ".join(own)]
    for number, index in enumerate(like.indexes.values()):
        copied = IndexMetadata(
            like.keyspace_name, table, f"{table}_{number}", index.kind, index.index_options
        )
        statements.append(str(copied.as_cql_query()))
    return statements


def _known_options(metadata: Metadata) -> Sequence[str]:
    known: list[str] = []
    with suppress(KeyError):  # a server that hides its own schema
        known += metadata.keyspaces["system_schema"].tables["tables"].columns
    return known
