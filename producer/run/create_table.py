"""`load --create-table`: show the table that fits the files, ask, and create it."""

from __future__ import annotations

import sys
from dataclasses import replace

from cassandra import AlreadyExists, DriverException
from cassandra.cluster import NoHostAvailable, Session
from cassandra.protocol import ErrorMessage

from config.settings import Settings
from producer.options.load import LoadOptions
from producer.plan.new_table import Planned
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.tables import find_table
from ringhaul.errors import EXIT_CANCELLED, ClusterError, ClusterUnavailable, Terminal, UsageError
from ringhaul.plain_text import lines_of
from ringhaul.records.job import LoadJob
from tasks.cluster_settings import cluster_config

#: Creating a table takes a node seconds while it is busy with other schema changes.
CREATE_TIMEOUT_S = 60.0
#: How long nodes may take to agree on the schema; a load would meet nodes without the table.
AGREEMENT_TIMEOUT_S = 60.0


class NotCreated(Terminal):
    """The user did not want the table."""

    exit_code = EXIT_CANCELLED


def create_table(
    planned: Planned, job: LoadJob, options: LoadOptions, session: Session, settings: Settings
) -> LoadJob:
    """Show the statement, ask if there is a terminal, create the table, and wait until all nodes
    know it. Return the job with the table as the cluster has it.

    Raises `UsageError` without a terminal and without --yes, `NotCreated` for a no, and
    `ClusterError` or `ClusterUnavailable`.
    """
    table = planned.table
    if not options.yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            lines_of(
                [
                    "--create-table asks before it creates a table, and there is no terminal: give "
                    "--yes, or create it by this statement",
                    table.statement,
                ]
            )
        )
    if not (options.yes and options.quiet):
        for line in (*planned.notes, table.text):
            print(line, file=sys.stderr, flush=True)
    if not options.yes and not _confirmed(table.schema.name):
        raise NotCreated(f"{table.schema.name} was not created, and nothing was loaded")
    schema = table.schema
    try:
        session.execute(str(table.statement), timeout=CREATE_TIMEOUT_S)
        session.cluster.refresh_table_metadata(schema.keyspace, schema.table)
    except AlreadyExists as error:
        raise ClusterError(
            f"somebody else has just created {schema.name}: run the command again"
        ) from error
    except (DriverException, NoHostAvailable, ErrorMessage) as error:
        config = cluster_config(settings)
        raise translate_error(error, where=config.where, user=config.user) from error
    _wait_for_agreement(session)
    return replace(job, table=find_table(DriverView(session), schema.keyspace, schema.table))


def _confirmed(name: str) -> bool:
    print(f"create {name} and load into it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _wait_for_agreement(session: Session) -> None:
    connection = session.cluster.control_connection
    if not connection.wait_for_schema_agreement(wait_time=AGREEMENT_TIMEOUT_S):
        raise ClusterUnavailable(
            f"the table is created, and after {AGREEMENT_TIMEOUT_S:.0f} s not all nodes know it: "
            "run the command again when `ringhaul doctor` sees one schema"
        )
