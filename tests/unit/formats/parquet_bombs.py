"""Small Parquet files that decode to gigabytes, and the cost of reading one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MIB = 1 << 20

#: Reads all row groups as a worker does, encodes cells of each block, and prints the cost.
READER = """
import json, os, sys, time
import pyarrow as pa
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import encode_typed
from ringhaul.cql.types import parse_type
from ringhaul.formats.parquet_read import read_batches, row_groups
from ringhaul.formats.pieces import Position
from ringhaul.sources.files import SourceFile, open_parquet
from ringhaul.formats.expanded_sizes import row_bytes

def peak_mib():
    # Not `ru_maxrss`, which begins with what the process had that started this one.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))

path, kinds = sys.argv[1], json.loads(sys.argv[2])
file = SourceFile(path, os.stat(path).st_size, False)
cpu, rows, blocks, most, ids, total = time.process_time(), 0, 0, 0, 0, 0
encode_typed(parse_type("text"), pa.array(["warm"]), TextFormat())
start_mib = peak_mib()
with open_parquet(file) as opened:
    groups = list(row_groups(opened.footer, 0))
for group in groups:
    with open_parquet(file, group.number, list(kinds)) as opened:
        at = Position(group.number, group.first_ordinal, group.first_row)
        for block in read_batches(
            opened, list(kinds), size_bytes=group.size_bytes, start=at, block_bytes=2 * 2**20
        ):
            size = int(row_bytes(block.batch).sum())
            total += size
            if block.records_count > 1:
                most = max(most, size)
            for name, column in zip(block.batch.schema.names, block.batch.columns):
                cells, faults = encode_typed(parse_type(kinds[name]), column, TextFormat())
                assert not faults, faults
            ids += sum(block.batch["id"].to_pylist()) if "id" in kinds else 0
            rows, blocks = rows + block.records_count, blocks + 1
print(json.dumps({
    "rows": rows, "blocks": blocks, "most": most, "ids": ids, "total": total,
    "cpu_s": time.process_time() - cpu,
    "start_mib": start_mib, "peak_mib": peak_mib(),
}))
"""


def read_apart(path: Path, kinds: dict[str, str]) -> dict[str, Any]:
    """Read a file and encode its cells in a separate process; return the cost."""
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path), json.dumps(kinds)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shared(rows_count: int, value: str | bytes = "x" * MIB) -> pa.DictionaryArray:
    """Rows that share one value."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows_count, np.int32)), pa.array([value])
    )


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    """A file with dictionaries of unlimited size and without an Arrow schema."""
    given = {"store_schema": False, "dictionary_pagesize_limit": 1 << 28, **options}
    pq.write_table(pa.table(columns), path, **given)
    return path


def ids(rows_count: int) -> pa.Array:
    return pa.array(np.arange(rows_count, dtype=np.int32))


def often(part: pa.Array, times: int) -> pa.ChunkedArray:
    """A column that repeats `part`, which is in memory once."""
    return pa.chunked_array([part] * times)


def late(before: int, part: list[str], times: int, *, after: int = 0) -> pa.ChunkedArray:
    """Short values, then `part` (long values) many times, then short values again."""
    chunks = [
        pa.array(["s"] * before),
        *[pa.array(part)] * times,
        pa.array(["s"] * after, pa.string()),
    ]
    return pa.chunked_array(chunks)
