"""A Sidecar of tests with nodes that are functions, and what these have imported."""

from __future__ import annotations

import random
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

from ringhaul.imports.sidecar import (
    Sidecar,
    SidecarSession,
)
from ringhaul.sstables.version import SSTableVersion
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import StreamedSSTable
from tests import sidecar as served

NODES = [Node(address=f"10.0.0.{n}", port=7000) for n in (1, 2, 3)]
NODE = NODES[0]
DATA = random.Random(1).randbytes(3_000_000)
TOKEN = "eyJhbGciOi.dGVzdA.c2lnbmVk"
#: Answers to the requests of one SSTable.
ALL_TAKEN = [200] * 4


def sstable(data: bytes = DATA) -> StreamedSSTable:
    digest = str(zlib.crc32(DATA)).encode()
    files = [("Data.db", data), ("Digest.crc32", digest), ("Statistics.db", b"s")]
    return StreamedSSTable(
        table=uuid.UUID(int=1),
        version=SSTableVersion.NB,
        header=b"",
        first_key=b"",
        components=[(name, memoryview(contents)) for name, contents in files],
        checksums={name: zlib.crc32(contents) for name, contents in files[1:]},
    )


@dataclass
class Rig:
    """A Sidecar of three nodes, and what they have imported."""

    server: served.Sidecar
    taken: Path
    refusal: str = ""  #: what the nodes say instead of importing
    options: dict[str, str] | None = None  #: of the latest import

    def access(self, **more: object) -> Sidecar:
        given = {"host": "127.0.0.1", "port": self.server.port, "request_timeout_s": 5.0}
        return Sidecar(**given | more)  # type: ignore[arg-type]

    def session(self, node: Node = NODE, table: str = "orders", **more: object) -> SidecarSession:
        return SidecarSession(node, self.access(**more), "shop", table)

    def send(self, **more: object) -> None:
        self.session(**more).send(sstable())  # type: ignore[arg-type]

    def imported(self, node: Node = NODE, table: str = "orders") -> dict[str, bytes]:
        """Return the files of the latest SSTable that a node has imported."""
        folders = sorted((self.taken / node.address / "shop" / table).iterdir())
        return {path.name: path.read_bytes() for path in folders[-1].iterdir()}

    def imports_count(self, node: Node = NODE) -> int:
        place = self.taken / node.address / "shop" / "orders"
        return len(list(place.iterdir())) if place.exists() else 0


def check(rig: Rig, node: Node = NODE) -> None:
    """Assert that a node has the SSTable, byte for byte, and that nothing is left of it."""
    found = rig.imported(node)
    assert found.pop("nb-1-big-TOC.txt") == b"Data.db\nDigest.crc32\nStatistics.db\nTOC.txt\n"
    assert found == {f"nb-1-big-{n}": bytes(c[:]) for n, c in sstable().components}
    assert rig.server.uploads() == []
