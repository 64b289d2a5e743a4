"""Where the SSTables of a load go: the replicas of its rows, and the way to them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable

from config.errors import ConfigError
from ringhaul.cluster.consistency import acknowledgements
from ringhaul.cluster.datacentres import local_dc_of
from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.permission import check_may_write
from ringhaul.cluster.replication import replication_of
from ringhaul.destination.delivered import Delivered, Imports
from ringhaul.errors import UsageError
from ringhaul.imports.command import check_names_node
from ringhaul.imports.session import ImportSession
from ringhaul.load.write.streaming import StreamTarget
from ringhaul.records.job import LoadJob
from ringhaul.streaming.delivery import Delivery, Session
from ringhaul.streaming.owners import Node, Owners
from ringhaul.streaming.ring import RingChanging, check_table, read_owners, refresh_replication
from ringhaul.streaming.session import StreamSession
from tasks.child.process import Child
from tasks.cluster_settings import cluster_config, streaming_tls
from tasks.import_settings import import_command, import_folders


def stream_target(child: Child, job: LoadJob, destination: Delivered, job_id: str) -> StreamTarget:
    """Return where the SSTables of a load go.

    Raises as `Child.session` does, and `ClusterError` if the table is no longer the job's, or if
    the user may not write to it: storage and JMX ports do not ask.
    """
    session, keyspace = child.session(), job.table.keyspace
    check_table(session, keyspace, job.table.table, destination.table_id)
    try:
        check_may_write(session, job.table)
    except (DriverException, NoHostAvailable) as error:
        where = cluster_config(child.settings).where
        raise translate_error(error, where=where, user=child.settings.cluster.user) from error
    port = child.settings.streaming.storage_port
    refresh_replication(session, keyspace)
    replication = replication_of(session, keyspace)
    if replication is None:
        raise RingChanging(f"the replication of keyspace {keyspace} is not known yet")
    owners = partial(read_owners, session, keyspace, port)
    return StreamTarget(
        table=uuid.UUID(destination.table_id),
        owners=owners,
        delivery=_delivery_of(child, job, destination, job_id, owners),
        needed=acknowledgements(job.consistency, replication, local_dc_of(session)),
    )


def _delivery_of(
    child: Child,
    job: LoadJob,
    destination: Delivered,
    job_id: str,
    owners: Callable[[], Owners],
) -> Delivery:
    """Return how SSTables are brought to nodes. It is kept, as it knows which nodes failed."""
    use = destination.session_key(job_id)
    if child.delivery is None or child.delivery[0] != use:
        new_session: Callable[[Node], Session]
        if isinstance(destination, Imports):
            nodes = {node for replicas in owners().sets for node in replicas}
            new_session = import_sessions(child, job, destination.folder, job_id, len(nodes))
        else:
            new_session = partial(StreamSession, tls=streaming_tls(child.settings))
        child.delivery = use, Delivery(new_session)
    return child.delivery[1]


def import_sessions(
    child: Child, job: LoadJob, folder: str, job_id: str, nodes_count: int
) -> Callable[[Node], ImportSession]:
    """Return how a session opens by which a node imports SSTables from its folder."""
    table = job.table
    folders = import_folders(child.settings, folder, table.keyspace, table.table, job_id)
    try:
        command = import_command(child.settings)
    except ConfigError as error:  # such as a password file that is gone
        raise UsageError(str(error)) from error
    check_names_node(command, nodes_count)
    return partial(ImportSession, folders=folders, command=command)
