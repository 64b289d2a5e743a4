"""The memory of a process that makes SSTables does not grow with its unit."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from ringhaul.cql.cells import Cells, bigint_cells, routing_keys
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.sstables import SSTableWriter
from ringhaul.records.rows import EncodedRows
from ringhaul.sstables.layout import Column, Layout
from ringhaul.storage.sorting import SpillBounds

_PACKAGE = "org.apache.cassandra.db.marshal."
#: Sorted in memory.
MEMORY_BYTES = 4 * 2**20
ROWS_A_BLOCK, VALUE_BYTES = 8000, 120
#: What sorting and building may take. Without spilling they would take several times the unit.
GROWN_BYTES_MAX = 20 * MEMORY_BYTES


def write_unit(folder: Path, blocks: int) -> dict[str, int]:
    """Write a unit of so many blocks of 1 MiB; return by how much the peak of memory rose after the
    first ones, and the counts of SSTables and rows."""
    value = Column(name="v", class_name=f"{_PACKAGE}BytesType", cql_type="blob", width=0)
    layout = Layout(
        partition_key_class=f"{_PACKAGE}LongType",
        clustering=(),
        columns=(value,),
        written_s=1_700_000_000,
    )
    bounds = SpillBounds(
        folder=str(folder / "sort"),
        spill_bytes_max=2**34,
        sstable_bytes=2**34,
        memory_bytes=MEMORY_BYTES,
    )
    hooks = WriterHooks(tick=lambda: None, throttle=lambda _: None, on_reject=lambda *_: None)
    writer = SSTableWriter(layout, ["k", "v"], 0, str(folder / "out"), 1, hooks, bounds)
    before = 0
    for number in range(blocks):
        writer.write(_block(number))
        if number == 1:
            before = _peak_bytes()
    writer.flush()
    writer.close()
    return {
        "grown_bytes": _peak_bytes() - before,
        "sstables": writer.sstables,
        "rows": writer.stats.written,
    }


def _block(number: int) -> EncodedRows:
    keys = bigint_cells(np.arange(number * ROWS_A_BLOCK, (number + 1) * ROWS_A_BLOCK))
    values = np.random.default_rng(number).integers(0, 256, (ROWS_A_BLOCK, VALUE_BYTES), np.uint8)
    times = bigint_cells(np.full(ROWS_A_BLOCK, 1_700_000_000_000_000))
    return EncodedRows(
        columns=[keys, Cells.fixed(values), times],
        keys=routing_keys([keys]),
        records=np.arange(ROWS_A_BLOCK),
        block=None,  # type: ignore[arg-type]  # only needed for rejects
    )


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_memory_is_bounded_whatever_the_unit_has(tmp_path: Path) -> None:
    blocks = 100
    script = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from tests.unit.load.test_sstable_memory import write_unit\n"
        "print(json.dumps(write_unit(Path(sys.argv[1]), int(sys.argv[2]))))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), str(blocks)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["sstables"], found["rows"]) == (1, blocks * ROWS_A_BLOCK)
    assert found["grown_bytes"] < GROWN_BYTES_MAX < blocks * ROWS_A_BLOCK * VALUE_BYTES, found
    assert not list((tmp_path / "sort").iterdir())
