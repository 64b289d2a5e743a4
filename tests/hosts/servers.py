"""The servers of a fleet, each on a separate host: Cassandra nodes, a broker, an object store."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from producer.local.cassandra import Node, start_node, wait_for_cql
from producer.local.jars import cassandra_jars
from producer.local.java import find_java
from producer.local.processes import stop_servers
from producer.local.ring import wait_for_ring
from producer.local.valkey import find_server
from tests.acceptance.command import wait_until
from tests.hosts.network import Host
from tests.services import user_cache_dir

CQL_PORT = 9042
STORAGE_PORT = 7000
BROKER_PORT = 6379


@contextmanager
def running_cassandra(places: Sequence[tuple[Host, str]], folder: Path) -> Iterator[None]:
    """Run a ring for the length of the block. `places`: hosts and their nodes' data centres."""
    jars, java = cassandra_jars(user_cache_dir(), lambda done, total: None), find_java()
    hosts = [host for host, _ in places]
    nodes: list[Node] = []
    try:
        for host, data_centre in places:
            node = Node(
                folder=folder / host.address,
                address=host.address,
                cql_port=CQL_PORT,
                storage_port=STORAGE_PORT,
                pid=None,
            )
            with host.inside(), _data_centre_of_next_node(node.folder, data_centre):
                pid = start_node(
                    node,
                    java=java,
                    jars=jars,
                    heap="512M",
                    seed=hosts[0].address,
                    nodes_count=len(hosts),
                    auth=False,
                    extra_yaml={
                        "endpoint_snitch": "GossipingPropertyFileSnitch",
                        # The ring is empty: a joining node has no data to stream.
                        "auto_bootstrap": False,
                    },
                )
                node = Node(**{**vars(node), "pid": pid})
                nodes.append(node)
                wait_for_cql(node)
        if len(hosts) > 1:
            with hosts[0].inside():
                addresses = [host.address for host in hosts]
                wait_for_ring(addresses, CQL_PORT, auth=False, timeout_s=90)
        yield
    finally:
        stop_servers([(node.pid, node.proof) for node in nodes if node.pid is not None], 0)


@contextmanager
def _data_centre_of_next_node(folder: Path, data_centre: str) -> Iterator[None]:
    """Put a node that starts in the block into this data centre."""
    folder.mkdir(parents=True)
    properties = folder / "cassandra-rackdc.properties"
    properties.write_text(f"dc={data_centre}\nrack=rack1\n")
    os.environ["JAVA_TOOL_OPTIONS"] = f"-D{properties.name}={properties.as_uri()}"
    try:
        yield
    finally:
        del os.environ["JAVA_TOOL_OPTIONS"]


@contextmanager
def running_broker(host: Host, folder: Path) -> Iterator[Path]:
    """Run a Valkey for the length of the block, and yield the file with its password."""
    password = folder / "redis_password"
    password.write_text(secrets.token_urlsafe(12))
    config = folder / "valkey.conf"
    config.write_text(
        f"bind {host.address}\nport {BROKER_PORT}\nrequirepass {password.read_text()}\n"
        f'dir "{folder}"\nappendonly yes\nappendfsync everysec\nsave ""\n'
    )
    log = folder / "valkey.log"
    with host.running([str(find_server()), str(config)], log, os.environ) as process:

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                socket.create_connection((host.address, BROKER_PORT), 1).close()
            except OSError:
                return False
            return True

        with host.inside():
            wait_until(answers, f"the broker; see {log}")
        yield password
