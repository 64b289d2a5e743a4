"""Rows that are sorted on disk: memory stays bounded, whatever is in them, and nothing is left."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ringhaul.errors import OutputUnavailable, OutputUnusable
from ringhaul.load.write.spill import Chunk, RowStore
from ringhaul.sstables.columns import Rows, bytes_of
from ringhaul.storage.room import check_room
from ringhaul.storage.sorting import SpillBounds
from tests.property.test_sstables import TIME_US, One, Shape, layout_of, rows_of

Stores = Callable[[SpillBounds], RowStore]
SHAPE = Shape([4], [False], [0, 4])
MEMORY_BYTES = 64 * 1024


def bounds(folder: Path, spill_bytes_max: int = 2**30) -> SpillBounds:
    return SpillBounds(
        folder=str(folder / "sort"),
        spill_bytes_max=spill_bytes_max,
        sstable_bytes=2**30,
        memory_bytes=MEMORY_BYTES,
    )


def block(first: int, count: int, key: bytes = b"") -> Rows:
    """Return rows of different partitions, or of one."""
    ones = [
        One(
            key or b"key %d" % n,
            (struct.pack(">i", n),),
            (b"x" * 100, struct.pack(">i", n)),
            TIME_US + n,
            0,
        )
        for n in range(first, first + count)
    ]
    return rows_of(SHAPE, ones)


@pytest.fixture
def stores() -> Iterator[Stores]:
    with ExitStack() as opened:
        yield lambda within: opened.enter_context(closing(RowStore(layout_of(SHAPE), within)))


def numbers(chunks: list[Chunk]) -> list[int]:
    return sorted(
        int.from_bytes(value.as_py(), "big")
        for chunk in chunks
        for value in chunk.rows.columns[1].values
    )


def test_buckets_fit_in_memory_and_follow_each_other(tmp_path: Path, stores: Stores) -> None:
    store = stores(bounds(tmp_path))
    for first in range(0, 8000, 100):
        store.add(block(first, 100))

    chunks = list(store.chunks())

    assert numbers(chunks) == list(range(8000))
    assert len(chunks) > 10
    assert all(bytes_of(chunk.rows) < 1.3 * MEMORY_BYTES for chunk in chunks)
    assert not any(chunk.overlaps for chunk in chunks)
    assert numbers(list(store.chunks())) == list(range(8000)), "may be repeated"


def test_a_partition_that_does_not_fit_is_divided(tmp_path: Path, stores: Stores) -> None:
    store = stores(bounds(tmp_path))
    store.add(block(0, 500))
    for first in range(500, 4500, 100):
        store.add(block(first, 100, b"wide"))
    store.add(block(4500, 500))

    chunks = list(store.chunks())

    assert numbers(chunks) == list(range(5000))
    assert all(bytes_of(chunk.rows) < 1.3 * MEMORY_BYTES for chunk in chunks)
    overlapping = [chunk for chunk in chunks if chunk.overlaps]
    assert len(overlapping) > 5
    assert all(b"wide" in chunk.rows.keys.to_pylist() for chunk in overlapping[:-1])


def test_few_rows_never_touch_the_disk(tmp_path: Path, stores: Stores) -> None:
    store = stores(bounds(tmp_path))
    store.add(block(0, 100))
    assert numbers(list(store.chunks())) == list(range(100))
    assert not (tmp_path / "sort").exists()


def test_a_store_is_full_at_its_bound_and_empty_when_cleared(
    tmp_path: Path, stores: Stores
) -> None:
    store = stores(bounds(tmp_path, spill_bytes_max=4 * MEMORY_BYTES))
    first = 0
    while not store.is_full:
        store.add(block(first, 100))
        first += 100
    assert 1000 < first < 2500
    store.clear()
    assert (store.rows_count, store.is_full, list(store.chunks())) == (0, False, [])
    store.add(block(7, 1))
    assert numbers(list(store.chunks())) == [7]


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tests.unit.load.test_spill import SHAPE, RowStore, block, bounds, layout_of\n"
        "folder = Path(sys.argv[1])\n"
        "store = RowStore(layout_of(SHAPE), bounds(folder))\n"
        "for first in range(0, 4000, 100):\n"
        "    store.add(block(first, 100))\n"
        "assert store.is_spilled\n"
        "print(os.listdir(folder / 'sort'), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (-9, "[]\n"), done.stderr
    assert os.listdir(tmp_path / "sort") == []


@pytest.mark.parametrize(
    ("error", "kind"), [(errno.ENOSPC, OutputUnusable), (errno.EIO, OutputUnavailable)]
)
def test_a_disk_that_fails_is_named(
    tmp_path: Path,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    error: int,
    kind: type[Exception],
) -> None:
    def fail(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pwrite", fail)
    store = stores(bounds(tmp_path))
    with pytest.raises(kind, match=r"cannot write to .*sort, which keeps rows to sort"):
        store.add(block(0, 1000))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, stores: Stores) -> None:
    (tmp_path / "sort").write_text("a file")
    store = stores(bounds(tmp_path))
    with pytest.raises(OutputUnavailable, match="File exists"):
        store.add(block(0, 1000))


def test_a_disk_without_room_is_refused_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a disk with 100 MiB free
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100 * 2**20))
    within = bounds(tmp_path)

    # When rows of some text have to be sorted: twice its bytes, and SSTables of the same size
    within.check_disk(24 * 2**20)
    check_room(within.needs(MEMORY_BYTES // 2, processes=10**9))  # sorted in memory

    # Then it is refused from a quarter of the room on, by all processes together
    for input_bytes, processes in ((26 * 2**20, 1), (9 * 2**20, 3)):
        with pytest.raises(OutputUnusable, match=r"has 100 MiB free.*\(up to 10[48] MiB\)"):
            check_room(within.needs(input_bytes, processes))
    assert bounds(tmp_path, spill_bytes_max=2**20).disk_bytes(2**40) == 2 * 2**20
