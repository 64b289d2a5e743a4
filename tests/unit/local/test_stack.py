"""Options that are refused before anything is started."""

from pathlib import Path

import pytest

from producer.local.layout import new_layout
from producer.local.stack import Stack
from ringhaul.errors import UsageError


def with_layout(tmp_path: Path, *, auth: bool = False) -> Stack:
    """A stack folder as `up --nodes 3` and `down` leave it, without the data."""
    folder = tmp_path / "local"
    folder.mkdir()
    new_layout(folder, 3, auth=auth, any_port=True).save(folder / "layout.json")
    return Stack(tmp_path, tmp_path / "cache")


@pytest.mark.parametrize("nodes", [0, 6])
def test_too_few_or_many_nodes(tmp_path: Path, nodes: int) -> None:
    with pytest.raises(UsageError, match=f"--nodes {nodes}: a local stack has 1 to 5 nodes"):
        Stack(tmp_path, tmp_path).up(nodes)


@pytest.mark.parametrize("heap", ["", "1", "0G", "1 G", "1G -Xfoo", "G"])
def test_a_heap_that_java_would_not_take(tmp_path: Path, heap: str) -> None:
    with pytest.raises(UsageError, match=r'such as "512M" or "2G"'):
        Stack(tmp_path, tmp_path).up(heap=heap)
    assert list(tmp_path.iterdir()) == []


def test_another_number_of_nodes_than_the_data_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"stack of 3 nodes already.*`ringhaul local down --wipe`"):
        with_layout(tmp_path).up(1)


@pytest.mark.parametrize(("there", "words"), [(True, "with"), (False, "without")])
def test_auth_cannot_change_under_data(tmp_path: Path, there: bool, words: str) -> None:
    with pytest.raises(UsageError, match=f"stack {words} passwords already"):
        with_layout(tmp_path, auth=there).up(auth=not there)


def test_without_a_stack_there_is_nothing_to_report_or_stop(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "state", tmp_path / "cache")
    assert stack.status().servers == []
    assert not stack.status().up
    assert not stack.status().partly
    assert stack.nodes() == []
    assert stack.down(wipe=True)
    assert not (tmp_path / "state").exists()
    with pytest.raises(UsageError, match="not up: start it with `ringhaul local up`"):
        stack.env()


def test_a_stack_that_is_down_shows_its_servers(tmp_path: Path) -> None:
    status = with_layout(tmp_path).status()
    assert [server.name for server in status.servers] == ["cassandra"] * 3 + ["valkey"]
    assert not any(server.answers or server.pid for server in status.servers)
    assert not status.up
    assert not status.partly
