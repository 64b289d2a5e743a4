"""A stack recognises its own servers: a foreign process on their ports is not one of them."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from producer.local import processes
from producer.local import stack as stack_module
from producer.local.cassandra import Node, wait_for_cql
from producer.local.errors import LocalStackError, PortTaken
from producer.local.layout import load_layout
from producer.local.stack import Endpoints, Stack
from producer.local.valkey import EmbeddedValkey
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.errors import ClusterError
from tests.services import connected, user_cache_dir

_SUPPORTED = b"\x85\x00\x00\x00\x06\x00\x00\x00\x00"


@pytest.fixture
def stranger() -> Iterator[int]:
    """The port of a server in this process that answers SUPPORTED, as Cassandra does."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1]


def _serve(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            if connection.recv(64):
                connection.sendall(_SUPPORTED)


def test_only_the_node_s_process_listens_on_its_ports(endpoints: Endpoints, stack: Stack) -> None:
    (node,) = stack.nodes()
    assert node.pid is not None
    assert processes.listens(node.pid, "127.0.0.1", endpoints.port)
    assert not processes.listens(node.pid, "127.0.0.1", stack.valkey.port)
    assert not processes.listens(2**22 + 1, "127.0.0.1", endpoints.port)
    assert processes.listener("127.0.0.1", endpoints.port) == f"process {node.pid} (java)"
    assert node.answers()
    assert node.port_of_others() is None


def test_a_foreign_cql_server_is_not_the_node(stack: Stack, stranger: int) -> None:
    (own,) = stack.nodes()
    node = Node(
        folder=own.folder,
        address="127.0.0.1",
        cql_port=stranger,
        storage_port=own.storage_port,
        pid=own.pid,
    )
    assert node.runs()
    assert not node.answers()
    assert node.port_of_others() == stranger


def test_ports_taken_while_the_node_starts_are_left_to_others(
    tmp_path: Path, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plan with the ports of a running node, as two stacks that start at once do."""
    (other,) = [endpoints.port]
    own = Stack(tmp_path / "own", user_cache_dir())
    planned = own._plan

    def on_the_ports_of_others(*arguments: object, **options: object) -> object:
        layout = planned(*arguments, **options)  # type: ignore[arg-type]
        node = layout.nodes[0]
        moved = Node(
            folder=node.folder,
            address=node.address,
            cql_port=other,
            storage_port=node.storage_port,
            pid=None,
        )
        return type(layout)(nodes=(moved,), auth=layout.auth)

    monkeypatch.setattr(own, "_plan", on_the_ports_of_others)
    steps: list[str] = []
    try:
        started = own.up(
            any_port=True, heap="512M", on_progress=lambda step: steps.append(step.text)
        )
        assert started.endpoints.port != other
        assert any(
            f"trying other ports: port {other} of 127.0.0.1 belongs to process" in text
            for text in steps
        ), steps
        with connected(started.endpoints) as mine, connected(endpoints) as theirs:
            query = "SELECT host_id FROM system.local"
            host_id = str(mine.execute(query).one().host_id)
            assert host_id != str(theirs.execute(query).one().host_id)
        assert started.endpoints.host_ids == [host_id]
        _another_node_in_its_place_is_found_out(own, tmp_path)
    finally:
        own.down(wipe=True)


def _another_node_in_its_place_is_found_out(own: Stack, tmp_path: Path) -> None:
    """Assert that a node with another host id than the recorded one is noticed."""
    layout_file = tmp_path / "own" / "local" / "layout.json"
    layout = load_layout(layout_file)
    assert layout is not None
    own.down()
    layout.with_host_ids(["00000000-0000-4000-8000-000000000000"]).save(layout_file)
    with pytest.raises(LocalStackError, match="the node of this stack has 00000000-0000-4000"):
        Stack(tmp_path / "own", user_cache_dir()).up(heap="512M")
    assert not any(server.pid for server in own.status().servers if server.name == "cassandra")


@pytest.mark.parametrize("log", ["system.log", "console.log"])
def test_a_port_that_was_taken_is_found_in_the_log_before_other_errors(
    tmp_path: Path, log: str
) -> None:
    node = Node(folder=tmp_path, address="127.0.0.1", cql_port=1, storage_port=2, pid=None)
    taken = "ERROR [main] 127.0.0.1/127.0.0.1:2 is in use by another process.\n"
    trace = "ERROR [StorageServiceShutdownHook] boom\n" + "\tat org.apache.cassandra.X\n" * 40
    (tmp_path / log).write_text(f"INFO Configuration location: x\n{taken}{trace}")
    with pytest.raises(PortTaken) as refusal:
        wait_for_cql(node)
    assert "another process took a port" in str(refusal.value)
    assert "org.apache" not in str(refusal.value)
    # An earlier start does not count
    (tmp_path / log).write_text(
        f"INFO Configuration location: x\n{taken}INFO Configuration location: x\n{trace}"
    )
    with pytest.raises(LocalStackError, match="ended while starting") as other:
        wait_for_cql(node)
    assert not isinstance(other.value, PortTaken)


def test_ports_that_stay_taken_fail_with_their_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Stack(tmp_path / "own", user_cache_dir())
    tries: list[int] = []
    pids: list[int] = []

    def taken(node: Node, **_: object) -> None:
        tries.append(node.cql_port)
        raise PortTaken(f"port {node.cql_port} of 127.0.0.1 belongs to process 1 (other)")

    def start(node: Node, **_: object) -> int:
        node.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", "import time; time.sleep(60)", node.proof]
        pids.append(processes.start_server(command, log=node.console, cwd=node.folder))
        return pids[-1]

    monkeypatch.setattr(stack_module, "start_node", start)
    monkeypatch.setattr(stack_module, "wait_for_cql", taken)
    with pytest.raises(PortTaken, match="belongs to process 1"):
        own.up(any_port=True, heap="512M")
    assert len(tries) == len(pids) == stack_module._PORT_TRIES_MAX
    assert not any(map(processes.rss_bytes, pids))
    assert not any(server.pid for server in own.status().servers)
    own.down(wipe=True)


def test_a_valkey_with_a_taken_port_starts_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedValkey(tmp_path / "first") as first:
        import producer.local.valkey as module

        choose: Callable[..., int] = module.choose_port  # type: ignore[attr-defined]
        ports = iter([first.port])
        monkeypatch.setattr(
            module, "choose_port", lambda *given: next(ports, None) or choose(*given)
        )
        with EmbeddedValkey(tmp_path / "second") as second:
            assert second.port != first.port
            assert second.answers()
            assert first.answers()


def test_a_cluster_without_the_expected_nodes_is_refused(endpoints: Endpoints) -> None:
    other = "00000000-0000-4000-8000-000000000000"

    def config(*host_ids: str) -> ClusterConfig:
        return ClusterConfig(contact_points=("127.0.0.1",), port=endpoints.port, host_ids=host_ids)

    with pytest.raises(ClusterError) as refused:
        open_session(config(other))
    assert f"cluster.host_ids expects {other}" in str(refused.value)
    with connected(endpoints) as session:
        own = str(session.execute("SELECT host_id FROM system.local").one().host_id)
    assert own in str(refused.value)
    close_session(open_session(config(other, own)))
