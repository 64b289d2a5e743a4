"""The stored layout of the stack."""

import socket
from pathlib import Path

from producer.local.layout import load_layout, new_layout, node_addresses


def test_addresses() -> None:
    assert node_addresses(1) == ["127.0.0.1"]
    assert node_addresses(3) == ["127.0.1.1", "127.0.1.2", "127.0.1.3"]


def test_save_and_load(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    assert load_layout(path) is None
    layout = new_layout(tmp_path, 3, auth=True, any_port=True).with_pid(1, 4711)
    layout.save(path)
    assert load_layout(path) == layout
    assert [node.pid for node in layout.nodes] == [None, 4711, None]
    assert len({node.cql_port for node in layout.nodes}) == 1
    assert layout.nodes[2].folder == tmp_path / "127.0.1.3"


def test_only_taken_ports_change(tmp_path: Path) -> None:
    layout = new_layout(tmp_path, 1, auth=False, any_port=True)
    assert layout.with_free_ports() == layout
    with socket.socket() as other:
        other.bind(("127.0.0.1", layout.cql_port))
        other.listen()
        moved = layout.with_free_ports()
    assert moved.cql_port != layout.cql_port
    assert moved.nodes[0].storage_port == layout.nodes[0].storage_port
