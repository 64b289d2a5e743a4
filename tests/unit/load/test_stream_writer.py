"""Rows that are sorted on disk reach the nodes that own them, and no others."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql.cells import Cells, bigint_cells, routing_keys
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.dataplane.base import RequestFailed
from ringhaul.errors import Transient
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.streaming import StreamTarget, StreamWriter
from ringhaul.records.rows import EncodedRows
from ringhaul.sstables.layout import Column, Layout
from ringhaul.storage.sorting import SpillBounds
from ringhaul.streaming.owners import Node, Owners
from ringhaul.streaming.ring import RingChanging
from ringhaul.streaming.session import NodeUnreachable, StreamedSSTable
from tests.sstable_reader import partitions_of
from tests.unit.streaming.test_owners import NODES, ring

ROWS, BLOCK = 6000, 500
LAYOUT = Layout(
    partition_key_class="K",
    clustering=(),
    columns=(Column(name="v", class_name="C", cql_type="blob", width=0),),
    written_s=1_700_000_000,
)


class Taken:
    """A delivery that keeps what each node is sent: key -> value."""

    def __init__(self, silent: Sequence[Node] = ()) -> None:
        self.retries = 0
        self.rows: dict[Node, dict[int, bytes]] = {}
        self.files: dict[Node, int] = {}
        self._silent = silent

    def send(
        self,
        sstable: StreamedSSTable,
        nodes: Sequence[Node],
        tick: Callable[[], None],
        spend: Callable[[int], int],
    ) -> Mapping[Node, Transient]:
        sstable.check()
        files = {name: bytes(contents[:]) for name, contents in sstable.components}
        found = {
            int.from_bytes(partition.key, "big"): partition.rows[0].cells["v"].value or b""
            for partition in partitions_of(files, {"v": 0})
        }
        for node in set(nodes) - set(self._silent):
            self.rows.setdefault(node, {}).update(found)
            self.files[node] = self.files.get(node, 0) + 1
        return {
            node: NodeUnreachable(f"{node}: no answer") for node in nodes if node in self._silent
        }


def block(first: int) -> EncodedRows:
    keys = bigint_cells(np.arange(first, first + BLOCK))
    values = pa.array([b"value %d" % n * 8 for n in range(first, first + BLOCK)], pa.binary())
    return EncodedRows(
        columns=[keys, Cells.variable(values), bigint_cells(np.full(BLOCK, 10**15))],
        keys=routing_keys([keys]),
        records=np.arange(BLOCK),
        block=None,  # type: ignore[arg-type]  # only needed for rejects
    )


def stream(
    folder: Path,
    owners: Callable[[], Owners],
    taken: Taken,
    *,
    replicas: int = 1,
    sstable_bytes: int = 2**30,
) -> StreamWriter:
    """Stream all rows as one unit, which is larger than memory."""
    delivery: Any = taken
    target = StreamTarget(
        table=uuid.UUID(int=1), owners=owners, delivery=delivery, needed={None: replicas}
    )
    bounds = SpillBounds(
        folder=str(folder),
        spill_bytes_max=2**30,
        sstable_bytes=sstable_bytes,
        memory_bytes=64 * 1024,
    )
    hooks = WriterHooks(tick=lambda: None, throttle=lambda _: None, on_reject=lambda *_: None)
    writer = StreamWriter(LAYOUT, ["k", "v"], 0, target, hooks, bounds)
    try:
        for first in range(0, ROWS, BLOCK):
            writer.write(block(first))
        writer.flush()
    finally:
        writer.close()
    assert list(folder.iterdir()) == []
    return writer


def owned(owners: Owners, node: Node) -> set[int]:
    """Return the keys of a node's rows."""
    keys = routing_keys([bigint_cells(np.arange(ROWS))])
    sets = owners.assign(murmur3_tokens(keys))
    return {key for key in range(ROWS) if node in owners.sets[sets[key]]}


def wide_ring(nodes: int, replicas: int) -> Owners:
    """The ring of the tests of owners, with tokens that divide what Murmur3 gives."""
    found = ring(nodes, replicas)
    step = 2**64 // nodes
    tokens = tuple(-(2**63) + step * (n + 1) - 1 for n in range(nodes))
    return Owners(tokens=tokens, sets=found.sets, set_of=found.set_of)


@pytest.mark.parametrize(("nodes", "replicas", "files"), [(3, 3, 1), (3, 2, 1), (8, 3, 1)])
def test_each_node_gets_its_rows_in_one_file(
    tmp_path: Path, nodes: int, replicas: int, files: int
) -> None:
    owners, taken = wide_ring(nodes, replicas), Taken()

    writer = stream(tmp_path, lambda: owners, taken, replicas=replicas)

    for node in NODES[:nodes]:
        assert set(taken.rows[node]) == owned(owners, node)
        assert taken.files[node] == files
        assert all(value == b"value %d" % key * 8 for key, value in taken.rows[node].items())
    assert writer.stats.written == ROWS
    assert set(writer.sent_bytes) == set(NODES[:nodes])


def test_sstables_are_cut_at_their_size(tmp_path: Path) -> None:
    owners, taken = wide_ring(3, 3), Taken()

    writer = stream(tmp_path, lambda: owners, taken, sstable_bytes=40_000)

    assert 3 <= writer.sstables <= 12
    assert [len(taken.rows[node]) for node in NODES[:3]] == [ROWS] * 3


def test_owners_that_change_meanwhile_get_all_rows_again(tmp_path: Path) -> None:
    before, after, taken = wide_ring(3, 1), wide_ring(2, 1), Taken()
    looks = iter([before, before])

    stream(tmp_path, lambda: next(looks, after), taken)

    for node in NODES[:2]:
        assert owned(after, node) <= set(taken.rows[node])


def test_a_ring_that_never_settles_gives_the_unit_back(tmp_path: Path) -> None:
    rings = [wide_ring(3, 1), wide_ring(2, 1)]
    looks = iter(range(1000))
    with pytest.raises(RingChanging, match="changed while these were streamed"):
        stream(tmp_path, lambda: rings[next(looks) % 2], Taken())


def test_too_few_replicas_give_the_unit_back_and_others_are_named(tmp_path: Path) -> None:
    owners = wide_ring(3, 3)
    writer = stream(tmp_path, lambda: owners, Taken(silent=NODES[:1]), replicas=2)
    assert list(writer.missed) == NODES[:1]
    assert set(writer.sent_bytes) == set(NODES[1:3])
    with pytest.raises(RequestFailed, match="1 of 3 replicas took the rows, 2 must"):
        stream(tmp_path, lambda: owners, Taken(silent=NODES[:2]), replicas=2)
