"""The local stack: Cassandra nodes and a Valkey, started and stopped with one call each.

`up` also repairs: it checks which servers run, starts the others, and publishes the addresses in
`<state_dir>/local.json` once all answer. Data and ports survive `down`.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from producer.local import processes
from producer.local.cassandra import (
    STOP_TIMEOUT_S,
    SUPERUSER,
    SUPERUSER_PASSWORD,
    Node,
    start_node,
    wait_for_cql,
)
from producer.local.errors import LocalStackError, PortTaken
from producer.local.jar_list import jar_list
from producer.local.jars import cassandra_jars
from producer.local.java import find_java
from producer.local.layout import Layout, load_layout, new_layout
from producer.local.server_status import StackStatus, node_status, valkey_status
from producer.local.state import locked, private_dir, write_json, write_private
from producer.local.valkey import EmbeddedValkey
from ringhaul.errors import UsageError

#: The data centre name of SimpleSnitch.
LOCAL_DC = "datacenter1"
VALKEY_PORT = 6379
#: More than five nodes on one machine would only test its memory.
NODES_MAX = 5
#: A single node gets what a load needs; several get less, so that they fit in memory together
#: (measured: 0.8 GB resident each at 512M).
HEAP_ONE_NODE = "1G"
HEAP_SEVERAL = "512M"
_HEAP = re.compile(r"[1-9][0-9]*[MGmg]")
_RING_TIMEOUT_S = 90
#: Ports are chosen seconds before a node opens them, so another program that starts meanwhile may
#: take them; on a machine where many start, more than once.
_PORT_TRIES_MAX = 6


class Progress(NamedTuple):
    """A step of `up`. `total` is 0 if the step has no length."""

    text: str
    done: int = 0
    total: int = 0


OnProgress = Callable[[Progress], None]
#: Settings of cassandra.yaml by the node's address; they override ours.
ExtraYaml = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """Addresses and credentials of a running stack."""

    contact_points: list[str]
    port: int
    local_dc: str
    host_ids: list[str]  #: to detect another cluster's node at the same address
    broker_url: str  #: with its password: a secret
    broker_password_file: Path
    user: str | None  #: None without authentication
    password_file: Path | None


@dataclass(frozen=True, kw_only=True)
class Started:
    """The result of `up`."""

    endpoints: Endpoints
    nodes_started: int
    valkey_started: bool

    @property
    def anything(self) -> bool:
        """Whether `up` started any server; False if all were already up."""
        return self.nodes_started > 0 or self.valkey_started


class Stack:
    """The stack with its data and state in `state_dir` and its jars in `cache_dir`."""

    def __init__(
        self, state_dir: Path, cache_dir: Path, *, extra_yaml: ExtraYaml | None = None
    ) -> None:
        """`extra_yaml`: settings of users' clusters that a local one lacks, for tests."""
        self._extra_yaml: ExtraYaml = extra_yaml or {}
        self._state_dir = state_dir.absolute()
        self._cache_dir = cache_dir.absolute()
        self._folder = self._state_dir / "local"
        self._layout_file = self._folder / "layout.json"
        self._published = self._state_dir / "local.json"
        self.valkey = EmbeddedValkey(self._state_dir / "valkey")

    def up(
        self,
        nodes: int | None = None,
        *,
        heap: str | None = None,
        auth: bool | None = None,
        any_port: bool = False,
        on_progress: OnProgress = lambda progress: None,
    ) -> Started:
        """Start all servers that are not running, and wait until they answer.

        `nodes`, `auth`: None means as it is, or one node without passwords if there is no stack.
        `heap`: heap size of each node that this call starts, as Java writes it.
        `any_port`: leave the usual ports 9042, 7000 and 6379 alone.

        Raises `UsageError` when `nodes` or `auth` differ from a stack that has data, or `heap` is
        given for nodes that all run; and `LocalStackError` when a server cannot be started: then
        all servers started by this call are stopped again.
        """
        if nodes is not None and not 1 <= nodes <= NODES_MAX:
            raise UsageError(f"--nodes {nodes}: a local stack has 1 to {NODES_MAX} nodes")
        if heap is not None and not _HEAP.fullmatch(heap):
            raise UsageError(f'--heap {heap}: write a number with M or G, such as "512M" or "2G"')
        private_dir(self._folder)
        with locked(self._folder / "stack.lock"):
            layout = self._plan(nodes, auth, any_port=any_port)
            if heap is not None and all(node.runs() for node in layout.nodes):
                raise UsageError(
                    f"--heap {heap}: the nodes run already: stop them with `ringhaul local down` "
                    "first (their data stays)"
                )
            valkey_ran = self.valkey.running()
            if not valkey_ran:
                on_progress(Progress("starting Valkey"))
            self.valkey.keep(0 if any_port else VALKEY_PORT)
            try:
                layout, nodes_started = self._start_on_free_ports(layout, heap, on_progress)
            except BaseException:
                if not valkey_ran:
                    self.valkey.unkeep()
                raise
            endpoints = self._publish(layout)
        return Started(
            endpoints=endpoints, nodes_started=nodes_started, valkey_started=not valkey_ran
        )

    def status(self) -> StackStatus:
        """Return the status of every server of the stack."""
        layout = load_layout(self._layout_file)
        if layout is None:
            return StackStatus(servers=[])
        servers = [node_status(node) for node in layout.nodes]
        servers.append(valkey_status(self.valkey))
        return StackStatus(servers=servers)

    def down(self, *, wipe: bool = False) -> bool:
        """Stop all servers; `wipe` also removes their data, including the ledger of past jobs.

        Return False if Valkey was left running because a command is using it; that command stops
        it when it ends. In that case `wipe` raises `UsageError`.
        """
        if not self._folder.exists():
            return True
        with locked(self._folder / "stack.lock"):
            if wipe and self.valkey.in_use():
                raise UsageError(
                    "a running ringhaul command keeps its job in the local Valkey. "
                    "Let it end or cancel its job (`ringhaul status`), then wipe."
                )
            self._published.unlink(missing_ok=True)
            layout = load_layout(self._layout_file)
            if layout is not None:
                # Data that is about to be wiped needs no drain.
                _stop(layout.nodes, 0 if wipe else STOP_TIMEOUT_S)
            valkey_stopped = self.valkey.unkeep()
            if wipe:
                shutil.rmtree(self._state_dir / "valkey", ignore_errors=True)
                for path in self._folder.iterdir():
                    if path.is_dir():
                        shutil.rmtree(path)
                    elif path.name != "stack.lock":
                        path.unlink()
        return valkey_stopped

    def endpoints(self) -> Endpoints:
        """Return the addresses of the running stack.

        Raises `UsageError` if it is not up.
        """
        layout = load_layout(self._layout_file)
        if layout is None or not self._published.exists() or not self.status().up:
            raise UsageError("the local stack is not up: start it with `ringhaul local up`")
        return self._endpoints(layout)

    def env(self) -> dict[str, str]:
        """Return the environment variables that point ringhaul at this stack, without secrets.

        Raises `UsageError` if the stack is not up.
        """
        ends = self.endpoints()
        variables = {
            "RINGHAUL_CLUSTER_CONTACT_POINTS": ",".join(ends.contact_points),
            "RINGHAUL_CLUSTER_PORT": str(ends.port),
            "RINGHAUL_CLUSTER_LOCAL_DC": ends.local_dc,
            "RINGHAUL_CLUSTER_HOST_IDS": ",".join(ends.host_ids),
            "RINGHAUL_BROKER_URL": f"redis://127.0.0.1:{self.valkey.port}/0",
            "RINGHAUL_BROKER_PASSWORD_FILE": str(ends.broker_password_file),
        }
        if ends.user is not None:
            variables["RINGHAUL_CLUSTER_USER"] = ends.user
            variables["RINGHAUL_CLUSTER_PASSWORD_FILE"] = str(ends.password_file)
        return variables

    def nodes(self) -> list[Node]:
        """Return the nodes of the stack, with their pids and logs; empty if there is no stack."""
        layout = load_layout(self._layout_file)
        return [] if layout is None else list(layout.nodes)

    def _plan(self, nodes: int | None, auth: bool | None, *, any_port: bool) -> Layout:
        """Return the layout to start, checked against the existing data."""
        layout = load_layout(self._layout_file)
        if layout is None:
            new = new_layout(self._folder, nodes or 1, auth=auth or False, any_port=any_port)
            return new.with_addresses_behind(
                {
                    address: str(settings["rpc_address"])
                    for address, settings in self._extra_yaml.items()
                    if "rpc_address" in settings
                }
            )
        have = len(layout.nodes)
        if nodes is not None and nodes != have:
            raise UsageError(
                f"--nodes {nodes}: a local stack of {_count(have)} already exists. Omit --nodes to "
                "use it, or remove it and its data: `ringhaul local down --wipe`."
            )
        if auth is not None and auth != layout.auth:
            raise UsageError(
                f"a local stack {'with' if layout.auth else 'without'} passwords already exists. "
                "To change that, remove it and its data first: `ringhaul local down --wipe`."
            )
        return layout if any(node.runs() for node in layout.nodes) else layout.with_free_ports()

    def _start_on_free_ports(
        self, layout: Layout, heap: str | None, on_progress: OnProgress
    ) -> tuple[Layout, int]:
        """Start the missing nodes, on other ports if another process took one meanwhile.

        The nodes share their port numbers: while a node runs, the others cannot change theirs.
        """
        for _ in range(_PORT_TRIES_MAX - 1):
            try:
                return self._start_nodes(layout, heap, on_progress)
            except PortTaken as error:
                if any(node.runs() for node in self.nodes()):
                    raise
                on_progress(Progress(f"trying other ports: {str(error).splitlines()[0]}"))
                layout = layout.with_free_ports()
        return self._start_nodes(layout, heap, on_progress)

    def _start_nodes(
        self, layout: Layout, heap: str | None, on_progress: OnProgress
    ) -> tuple[Layout, int]:
        missing = [i for i, node in enumerate(layout.nodes) if not node.runs()]
        started: list[Node] = []
        try:
            if missing:
                java = find_java()
                jars = cassandra_jars(
                    self._cache_dir,
                    lambda done, total: on_progress(
                        Progress(f"fetching Cassandra {jar_list().cassandra_version}", done, total)
                    ),
                )
            for i in missing:
                on_progress(Progress(f"starting Cassandra at {layout.addresses[i]}"))
                pid = start_node(
                    layout.nodes[i],
                    java=java,
                    jars=jars,
                    heap=heap or default_heap(len(layout.nodes)),
                    seed=layout.addresses[0],
                    nodes_count=len(layout.nodes),
                    auth=layout.auth,
                    extra_yaml=self._extra_yaml.get(layout.addresses[i], {}),
                )
                layout = layout.with_pid(i, pid)
                layout.save(self._layout_file)
                started.append(layout.nodes[i])
                wait_for_cql(layout.nodes[i])
            for node in layout.nodes:
                wait_for_cql(node)
            if missing and (len(layout.nodes) > 1 or layout.auth):
                self._wait_for_ring(layout, on_progress)
            if missing or len(layout.host_ids) < len(layout.nodes):
                layout = self._identified(layout)
        except BaseException:
            _stop(started, STOP_TIMEOUT_S)
            raise
        return layout, len(missing)

    def _wait_for_ring(self, layout: Layout, on_progress: OnProgress) -> None:
        from producer.local.ring import wait_for_ring  # brings in the driver: 0.3 s

        on_progress(Progress("waiting for the cluster to agree"))
        wait_for_ring(
            layout.addresses, layout.cql_port, auth=layout.auth, timeout_s=_RING_TIMEOUT_S
        )

    def _identified(self, layout: Layout) -> Layout:
        """Return the layout with its nodes' host ids, saved for the next `up`.

        Raises `LocalStackError` if another node used this folder before.
        """
        from producer.local.ring import read_host_ids  # brings in the driver: 0.3 s

        host_ids = read_host_ids(layout.addresses, layout.cql_port, auth=layout.auth)
        for node, host_id in zip(layout.nodes, host_ids, strict=True):
            if node.host_id not in ("", host_id):
                raise LocalStackError(
                    f"Cassandra at {node.address} port {node.cql_port} has the host id {host_id}; "
                    f"the node of this stack has {node.host_id}. Its data was replaced, or another "
                    "node answers in its place. `ringhaul local down --wipe` lets you start over."
                )
        layout = layout.with_host_ids(host_ids)
        layout.save(self._layout_file)
        return layout

    def _publish(self, layout: Layout) -> Endpoints:
        """Write the addresses to the file that `config.settings` reads."""
        ends = self._endpoints(layout)
        published: dict[str, object] = {
            "contact_points": ends.contact_points,
            "port": ends.port,
            "local_dc": ends.local_dc,
            "host_ids": layout.host_ids,
            "broker_url": ends.broker_url,
        }
        if ends.user is not None and ends.password_file is not None:
            write_private(ends.password_file, SUPERUSER_PASSWORD)
            published["user"] = ends.user
            published["password_file"] = str(ends.password_file)
        write_json(self._published, published)
        return ends

    def _endpoints(self, layout: Layout) -> Endpoints:
        return Endpoints(
            contact_points=layout.addresses,
            port=layout.cql_port,
            local_dc=LOCAL_DC,
            host_ids=layout.host_ids,
            broker_url=self.valkey.url,
            broker_password_file=self.valkey.password_file,
            user=SUPERUSER if layout.auth else None,
            password_file=self._folder / "cassandra_password" if layout.auth else None,
        )


def default_heap(nodes_count: int) -> str:
    """Return the default heap of each node."""
    return HEAP_ONE_NODE if nodes_count == 1 else HEAP_SEVERAL


def _stop(nodes: Sequence[Node], timeout_s: float) -> None:
    """Stop the running `nodes`, all at once."""
    servers = [(node.pid, node.proof) for node in nodes if node.pid is not None]
    processes.stop_servers(servers, timeout_s)
    if any(node.runs() for node in nodes):
        raise LocalStackError("a local Cassandra node does not exit, not even after SIGKILL")


def _count(nodes_count: int) -> str:
    return "one node" if nodes_count == 1 else f"{nodes_count} nodes"
