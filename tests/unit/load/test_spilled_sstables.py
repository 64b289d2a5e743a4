"""An SSTable that is sorted on disk is, byte for byte, the one that is sorted in memory."""

from __future__ import annotations

import random
import struct
from contextlib import closing
from pathlib import Path

import pytest

from ringhaul.load.write.spill import RowStore, SpilledFiles
from ringhaul.sstables.build import Built, SSTableBuilder, build_sstable
from ringhaul.storage.sorting import SpillBounds
from tests.property.test_sstables import TIME_US, One, Shape, layout_of, rows_of

SHAPES = {
    "key alone": Shape([], [], [0, 4]),
    "clustering": Shape([4, 0], [True, False], [0, 4, 0]),
    "64 columns": Shape([0], [False], [0, 4] * 32),
}


def rows(shape: Shape, count: int) -> list[One]:
    """Return rows, some with the same key, and each with any of its values missing."""
    dice = random.Random(3)

    def value(width: int) -> bytes:
        return struct.pack(">i", dice.randrange(9)) if width else dice.randbytes(dice.randrange(90))

    return [
        One(
            b"key %d" % dice.randrange(count // 3),
            tuple(value(width) for width in shape.clustering),
            tuple(dice.choice([value(width), ..., None]) for width in shape.columns),
            TIME_US + dice.randrange(5),
            dice.choice([0, 0, 60, 3600]),
        )
        for _ in range(count)
    ]


def contents(built: Built) -> dict[str, bytes]:
    return {name: bytes(data[:]) for name, data in built.files}


@pytest.mark.parametrize("chunk", [0, 64])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_pieces_make_the_same_files(shape: Shape, chunk: int, tmp_path: Path) -> None:
    # Given rows in blocks, and the SSTable of all of them
    ones = rows(shape, 300)
    layout = layout_of(shape, chunk_bytes=chunk, index_interval=3)
    expected = build_sstable(layout, [rows_of(shape, ones)])
    bounds = SpillBounds(
        folder=str(tmp_path),
        spill_bytes_max=2**30,
        sstable_bytes=2**30,
        memory_bytes=sum(len(v) for one in ones for v in one.values if isinstance(v, bytes)) // 3,
    )
    with (
        closing(RowStore(layout, bounds)) as store,
        closing(SpilledFiles(bounds)) as files,
    ):
        # When they are sorted through files
        for at in range(0, len(ones), 10):
            store.add(rows_of(shape, ones[at : at + 10]))
        builder = SSTableBuilder(layout, store.extent, files)
        pieces = list(store.chunks())
        for piece in pieces:
            assert not piece.overlaps
            builder.append(piece.rows)
        built = builder.finish()

        # Then the files are the same, and none has a name
        assert store.is_spilled and len(pieces) > 2
        assert contents(built) == contents(expected)
        assert built[1:] == expected[1:]
        assert not list(tmp_path.iterdir())
