"""Readings of sensors, the input of several tests: small partitions and a wide one."""

from __future__ import annotations

import random
from pathlib import Path

TABLE = "id text, seq int, temp double, sensor text, ts timestamp, PRIMARY KEY (id, seq)"
#: For tests that count SSTables: the node merges some of them at any moment otherwise.
KEEP_FILES = "compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"
#: What `comparison.assert_equal` compares of them.
TIMES = "id, seq, writetime(temp), writetime(sensor)"
ROWS = 6000


def write_readings(folder: Path) -> None:
    """Write `in.csv` in random order, with empty fields."""
    dice = random.Random(1)
    lines = [
        f"device-{n // 7},{n % 7 - 3},{dice.gauss(20, 5)},"
        f"{'' if n % 11 == 0 else f'sensor-ä-{n % 50}'},{1_700_000_000_000 + n}"
        for n in range(ROWS - 2000)
    ]
    lines += [f"wide,{n},{n}.5,{'x' * 90},{1_600_000_000_000 + n}" for n in range(2000)]
    dice.shuffle(lines)
    (folder / "in.csv").write_text("id,seq,temp,sensor,ts\n" + "\n".join(lines) + "\n")
