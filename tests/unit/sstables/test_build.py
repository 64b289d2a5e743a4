"""SSTables of cases that random rows hardly reach: wide partitions, many keys, equal tokens."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.sstables.bloom_filter import filter_shape
from ringhaul.sstables.hashing import REGISTERS, add_keys
from ringhaul.sstables.version import SSTableVersion
from tests.property.test_sstables import TIME_US, One, Shape, check
from tests.sstable_reader import NOT_DELETED, Bytes, data_of, index_of

WIDE = Shape([4], [True], [0, 4])


def wide_rows(count: int) -> list[One]:
    """Rows of one partition with 1 kB each, in random order."""
    rows = [
        One(b"wide", (struct.pack(">i", n - 50),), (bytes([n % 251]) * 1000, ...), TIME_US + n, 0)
        for n in range(count)
    ]
    random.Random(1).shuffle(rows)
    return rows


@pytest.mark.parametrize("version", list(SSTableVersion))
def test_a_wide_partition_is_indexed_in_blocks_that_tile_it(version: SSTableVersion) -> None:
    # Given a partition of 300 kB, and a narrow one
    rows = [*wide_rows(300), One(b"narrow", (b"\0\0\0\1",), (b"x", b"1234"), TIME_US, 0)]

    # When it is built
    files = check(WIDE, rows, version=version)

    # Then its blocks follow each other without gaps, each but the last of 64 KiB or a row more
    entries = {key: extra for key, _, extra, _ in index_of(files["Index.db"])}
    assert entries[b"narrow"] == b""
    cursor = Bytes(entries[b"wide"])
    header = cursor.vint()
    not_deleted = NOT_DELETED[version]
    assert header == 2 + 4 + len(not_deleted)
    assert cursor.take(len(not_deleted)) == not_deleted
    starts, ends = [], []
    for _ in range(count := cursor.vint()):
        for _ in range(2):
            assert cursor.take(2) == b"\x04\0"
            cursor.take(4)
        starts.append(cursor.vint())
        zigzag = cursor.vint()
        ends.append(starts[-1] + 65_536 + (zigzag >> 1 ^ -(zigzag & 1)))
        assert cursor.take(1) == b"\0"
    assert count == 5
    assert len(cursor.take(4 * count)) == 4 * count and cursor.over
    assert starts == [header, *ends[:-1]]
    full = zip(starts[:-1], ends[:-1], strict=True)
    assert all(65_536 <= end - start < 66_700 for start, end in full)
    places = {key: at for key, at, _, _ in index_of(files["Index.db"])}
    after = [at for at in (*places.values(), len(data_of(files))) if at > places[b"wide"]]
    assert ends[-1] == min(after) - places[b"wide"]


def test_a_partition_of_exactly_one_block_has_no_blocks_in_the_index() -> None:
    files = check(WIDE, wide_rows(65))

    assert index_of(files["Index.db"])[0][2] == b""


def test_thousands_of_partitions_are_in_the_order_of_their_tokens() -> None:
    shape = Shape([], [], [4])
    rows = [One(f"key {n}".encode(), (), (struct.pack(">i", n),), TIME_US, 0) for n in range(3000)]

    check(shape, rows)


def test_the_bloom_filter_has_every_key_and_few_others() -> None:
    # Given a filter of 2,000 keys for one false positive in a hundred
    bits_a_key, hashes = filter_shape(0.01)
    bits = np.zeros((2000 * bits_a_key + 20) // 64 * 8 + 8, np.uint8)

    def add(first: int, last: int) -> None:
        keys = [b"k%d" % n for n in range(first, last)]
        offsets = np.cumsum([0, *map(len, keys)]).astype(np.int32)
        data = np.frombuffer(b"".join(keys), np.uint8).copy()
        add_keys(data, offsets, bits, hashes, np.zeros(REGISTERS, np.int64))

    add(0, 2000)
    before = bits.copy()

    # When a key is added again, then no bit changes; of other keys nearly all set some
    add(0, 2000)
    assert (bits == before).all()
    known = 0
    for n in range(10_000, 10_400):
        add(n, n + 1)
        known += int((bits == before).all())
        bits[:] = before
    assert known < 20


def test_shapes_of_bloom_filters_are_those_of_cassandra() -> None:
    # From BloomCalculations: bits for each key, and hashes
    assert [filter_shape(chance) for chance in (0.1, 0.01, 0.001)] == [(5, 3), (10, 5), (15, 8)]


def test_kernels_stay_within_their_arrays(tmp_path: Path) -> None:
    """The same checks with bounds checks compiled in: an index out of bounds raises."""
    script = (
        "from hypothesis import HealthCheck, settings\n"
        "settings.register_profile('busy', deadline=None, suppress_health_check=HealthCheck)\n"
        "settings.load_profile('busy')\n"
        "from tests.property import test_sstables as rows\n"
        "from tests.unit.sstables.test_build import WIDE, wide_rows\n"
        "from tests.unit.sstables.test_elements import check_bounds\n"
        "rows.check(WIDE, wide_rows(150))\n"
        "check_bounds()\n"
        "from tests.unit.sstables import test_nested as nested\n"
        "nested.test_bytes_of_any_nested_type_sort_like_its_values()\n"
        "rows.test_rows_are_merged_sorted_and_indexed_as_a_node_would()\n"
    )
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_keys_of_one_token_stay_apart() -> None:
    """No two keys with one Murmur3 token are at hand, so the order is checked alone."""
    from ringhaul.sstables.order import arrange

    keys = np.frombuffer(b"bbabab", np.uint8).copy()  # b, ba, b, ab
    offsets = np.array([0, 1, 3, 4, 6], np.int32)
    order, begins = np.arange(4), np.zeros(4, np.uint8)
    none = np.zeros(0, np.uint8)

    partitions = arrange(
        order, np.full(4, 7), keys, offsets, none, np.zeros((0, 5), np.int32),
        np.zeros(0, np.int64), none, begins, np.zeros(2, np.int64),
    )  # fmt: skip

    assert order.tolist() == [3, 0, 2, 1]
    assert begins.tolist() == [2, 2, 0, 2]
    assert partitions == 3


def test_pyarrow_packs_lz4_without_a_frame() -> None:
    assert pa.Codec("lz4_raw").compress(b"a", asbytes=True) == b"\x10a"
