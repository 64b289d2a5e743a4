"""One import: the files reach the node, an answer that cannot be true is noticed, nothing is left.

The node is a script that does with the files what a node does.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from ringhaul.errors import Transient
from ringhaul.imports.command import ImportCommand, ImportRefused
from ringhaul.imports.folder import ImportFolders
from ringhaul.imports.session import ImportSession
from ringhaul.sstables.version import SSTableVersion
from ringhaul.streaming.delivery import Delivery
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import StreamedSSTable

NODES = [Node(address=f"10.0.0.{n}", port=7000) for n in (1, 2, 3)]
SSTABLE = StreamedSSTable(
    table=uuid.UUID(int=1),
    version=SSTableVersion.NB,
    header=b"",
    first_key=b"",
    components=[("Data.db", b"rows"), ("Digest.crc32", b"1")],
    checksums={},
)


def session(node: Node, base: Path, script: str) -> ImportSession:
    folders = ImportFolders(
        folder=str(base / "{node}"),
        node_folder=str(base / "{node}"),
        keyspace="shop",
        table="orders",
        job_id="ld-1",
    )
    words = ("sh", "-c", script, "import", "{node}", "{folder}", str(base))
    return ImportSession(node, folders, ImportCommand(words=words, port=1, connects=False))


MOVE = 'mkdir -p "$3/taken/$1" && mv "$2"/* "$3/taken/$1"'


def left(base: Path) -> list[str]:
    return [path.name for path in base.glob("10.*/**/*") if path.is_file()]


def test_the_files_are_there_when_the_node_is_called(tmp_path: Path) -> None:
    session(NODES[0], tmp_path, MOVE).send(SSTABLE)
    taken = {path.name: path.read_bytes() for path in (tmp_path / "taken/10.0.0.1").iterdir()}
    assert taken["nb-1-big-Data.db"] == b"rows"
    assert set(taken) == {f"nb-1-big-{n}" for n in ("Data.db", "Digest.crc32", "TOC.txt")}
    assert left(tmp_path) == []


def test_an_import_that_moved_nothing_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=r"and the files were still there: does it see the"):
        session(NODES[0], tmp_path, "true").send(SSTABLE)
    assert left(tmp_path) == []
    session(NODES[0], tmp_path, "true").probe()  # where there is nothing to move


def test_a_failed_import_is_tried_again_with_new_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringhaul.streaming.delivery.PAUSES_S", (0.01, 0.01))
    # Given nodes of which one moves the files and fails once, and one fails always
    script = (
        'case "$1" in 10.0.0.3) echo error: disk full; exit 1;; esac; '
        f'{MOVE}; [ "$1" != 10.0.0.2 ] || [ -e "$3/failed" ] || {{ touch "$3/failed"; exit 1; }}'
    )
    delivery = Delivery(lambda node: session(node, tmp_path, script))

    # When an SSTable is brought to all
    missed = delivery.send(SSTABLE, NODES, lambda: None)

    # Then two have it, and the third is named
    assert list(missed) == NODES[2:]
    assert isinstance(missed[NODES[2]], Transient)
    assert "10.0.0.3 did not import: disk full" in str(missed[NODES[2]])
    assert delivery.retries == 3
    for node in NODES[:2]:
        assert (tmp_path / "taken" / node.address / "nb-1-big-Data.db").read_bytes() == b"rows"
    assert left(tmp_path) == []


def test_a_unit_that_is_given_up_ends_its_imports(tmp_path: Path) -> None:
    delivery = Delivery(lambda node: session(node, tmp_path, "exec sleep 300"))

    def stop() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        delivery.send(SSTABLE, NODES[:2], stop)
    assert left(tmp_path) == []


def test_a_unit_that_is_given_up_writes_no_further(tmp_path: Path) -> None:
    one = session(NODES[0], tmp_path, f"touch {tmp_path}/called")
    one.abort()
    with pytest.raises(Transient, match="the import was given up"):
        one.send(SSTABLE)
    assert left(tmp_path) == []
    assert not (tmp_path / "called").exists()
