"""Compute a SELECT over a CSV file with duckdb: the step after an unload, and the reference.

`python -m bench.compute SELECT FILE OUT`: the file is table `t`, the result is a CSV file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb


def compute(select: str, source: Path, out: Path) -> None:
    """Write the result of `select` over `t`, the rows of `source`, to `out`."""
    with duckdb.connect() as connection:
        connection.read_csv(str(source), header=True).create_view("t")
        connection.sql(select).write_csv(str(out), header=True)


if __name__ == "__main__":
    compute(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
