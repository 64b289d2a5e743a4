"""Plan a load whose SSTables nodes import: whether the table, the cluster and its nodes allow it.

What cannot be imported is refused here, before anything starts. Each node is called once for that.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

from config.settings import Settings
from producer.destination.layout import by_cql, in_version, layout_of
from producer.destination.nodes import (
    Replicas,
    check_cluster,
    check_input_bytes,
    check_writer,
    read_replicas,
)
from producer.destination.streaming import is_sai
from producer.destination.way import LoadFacts, Way
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.view import ClusterView, TableStorage
from ringhaul.destination.delivered import Imports
from ringhaul.errors import RinghaulError, SetupUnusable, Terminal, UsageError
from ringhaul.imports.command import NodeNotReached, check_names_node
from ringhaul.imports.folder import NODE, remove_job_folders
from ringhaul.imports.session import ImportSession
from ringhaul.ledger.reading import Reader
from ringhaul.sstables.version import SSTableVersion
from ringhaul.storage.room import Need, check_room
from ringhaul.streaming.owners import Node
from tasks.import_settings import import_command, import_folders

OPTION = "--via import"
#: Nodes that are called at a time; each call may be a JVM.
_CALLS_MAX = 4
#: How long an import of nothing may take.
_CALL_S = 60.0
_REMOTE_JMX = (
    "Cassandra lets only its own host use JMX unless cassandra-env.sh says LOCAL_JMX=no; else set "
    "imports.command"
)


class ImportsWay(Way[Imports]):
    """SSTables in a folder from which the nodes import them."""

    def plan(self, facts: LoadFacts) -> Imports:
        table, cluster, settings = facts.table, facts.cluster, facts.settings
        check_cluster(OPTION, cluster, settings, scylla="imports in another way", ports="JMX ports")
        folder = settings.imports.folder
        if folder is None:
            raise SetupUnusable(
                f"{OPTION} needs a folder that this host, the workers and the nodes share: set "
                "imports.folder, such as /mnt/imports/{node}"
            )
        layout = layout_of(OPTION, table, facts.cluster, facts.sources)
        layout = in_version(SSTableVersion.NB, layout, OPTION, facts.ttl_s)  # all nodes read it
        _check_indexes(facts.storage, table)
        least_bytes = settings.imports.input_bytes_min
        check_input_bytes(OPTION, "imports.input_bytes_min", least_bytes, facts.input_bytes)
        check_writer(cluster, table, settings)
        planned = Imports(
            table_id=cluster.table_id(table.keyspace, table.table),
            layout=layout,
            folder=str(folder.absolute()),
        )
        replicas = read_replicas(OPTION, cluster, table.keyspace, settings)
        _check_nodes(replicas, cluster, table, planned.folder, settings)
        each_bytes = min(facts.input_bytes, facts.processes * settings.sstables.size_bytes)
        check_room(import_needs(planned.folder, replicas.nodes, each_bytes))
        return planned

    def publish(self, ledger: Reader, job_id: str, destination: Imports) -> None:
        remove_job_folders(destination.folder, job_id)


WAY = ImportsWay()


def import_needs(folder: str, nodes: Sequence[Node], each_bytes: int) -> list[Need]:
    """Return the room that nodes need in their folders: `each_bytes`, until they have moved it.

    `folder`: path that may contain `NODE`. A missing folder belongs to a node that is down.
    """
    by_folder = Counter(folder.replace(NODE, node.address) for node in nodes)
    return [
        Need(
            folder=name,
            bytes_count=count * each_bytes,
            what="SSTables on their way to nodes",
            advice="lower --sstable-size or the number of workers",
        )
        for name, count in by_folder.items()
        if os.path.isdir(name)
    ]


def _check_indexes(storage: TableStorage, table: TableSchema) -> None:
    """Raise `UsageError` for a table with an index of which it is not known whether an import fills
    it."""
    for name, kind in storage.custom_indexes:
        if not is_sai(kind):
            raise UsageError(
                f"{OPTION} cannot fill {table.name}: its index {name!r} is of class {kind}, and "
                f"only SAI was tried; {by_cql(OPTION)}"
            )


def _check_nodes(
    replicas: Replicas, cluster: ClusterView, table: TableSchema, folder: str, settings: Settings
) -> None:
    """Raise `SetupUnusable` unless enough nodes import an empty folder: see `_check_answers`."""
    job = f"probe-{uuid4().hex[:12]}"
    folders = import_folders(settings, folder, table.keyspace, table.table, job)
    given = import_command(settings)
    check_names_node(given, len(replicas.nodes))
    command = replace(given, timeout_s=min(given.timeout_s, _CALL_S))
    try:
        _check_answers(
            replicas, cluster, lambda node: ImportSession(node, folders, command).probe()
        )
    finally:
        remove_job_folders(folder, job)


def _check_answers(replicas: Replicas, cluster: ClusterView, probe: Callable[[Node], None]) -> None:
    """Raise `SetupUnusable` unless enough nodes can be probed. All other nodes must plainly be
    down: a node that is up, and refuses, would refuse each SSTable.

    `probe`: raises `NodeNotReached` for a node that is not reached, and other errors for a node
    that would import nothing.
    """

    def probed(node: Node) -> RinghaulError | None:
        try:
            probe(node)
        except RinghaulError as error:
            return error
        return None

    with ThreadPoolExecutor(_CALLS_MAX) as threads:
        answers = dict(zip(replicas.nodes, threads.map(probed, replicas.nodes), strict=True))
    missing = {node: error for node, error in answers.items() if error is not None}
    down = {node.internal_address for node in cluster.nodes if node.is_down}
    for node, error in missing.items():
        is_down = isinstance(error, NodeNotReached) or node.address in down
        if isinstance(error, Terminal) or not is_down:
            raise SetupUnusable(f"{OPTION}: {error}") from error
    lacking = replicas.needed_of(missing)
    if lacking is not None:
        raise SetupUnusable(
            f"{OPTION}: {missing[lacking]}, and {replicas.level} needs this node. {_REMOTE_JMX}"
        )
