"""The memory of a process that makes SSTables does not grow with its unit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Sorted in memory. A unit of many times as much needs less than ten times as much in all.
MEMORY = 4 * 2**20
SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from ringhaul.cql.cells import Cells, fixed_binary
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.sstables import SSTableWriter
from ringhaul.load.write.spill import SpillBounds
from ringhaul.records.rows import EncodedRows
from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.layout import Column, Layout
from tests.unit.load.test_sstable_memory import MEMORY, block

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

folder, blocks = Path(sys.argv[1]), int(sys.argv[2])
column = Column(name="v", class_name="org.apache.cassandra.db.marshal.BytesType", cql_type="blob", width=0)
layout = Layout(partition_key_class="org.apache.cassandra.db.marshal.LongType", clustering=(), columns=(column,), written_s=1_700_000_000)
bounds = SpillBounds(folder=str(folder / "sort"), spill_bytes_max=2**34, sstable_bytes=2**34, memory_bytes=MEMORY)
hooks = WriterHooks(tick=lambda: None, throttle=lambda rows: None, on_reject=lambda *_: None)
writer = SSTableWriter(layout, ["k", "v"], 0, str(folder / "out"), 1, hooks, bounds)
for number in range(2):
    writer.write(block(number))
before = peak()
for number in range(2, blocks):
    writer.write(block(number))
writer.flush()
writer.close()
print(peak() - before, writer.sstables, writer.stats.written)
"""


def block(number: int) -> object:
    """Return some 1 MB of rows."""
    import numpy as np

    from ringhaul.cql.cells import Cells, bigint_cells, constant_bigint, fixed_binary

    count = 8000
    keys = np.arange(number * count, (number + 1) * count, dtype=np.int64)
    values = np.random.default_rng(number).integers(0, 256, (count, 120), np.uint8)
    ids = bigint_cells(keys)
    raise NotImplementedError(ids, values, Cells, constant_bigint, fixed_binary)
