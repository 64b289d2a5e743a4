"""Checks of output files: every row is there, with the value that was loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from ringhaul.cluster.schema import TableSchema


def row_files(folder: Path) -> list[Path]:
    """Return the row files that a tool wrote to a folder."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".csv", ".parquet"))


def count_rows(files: Sequence[Path]) -> int:
    """Count rows in Parquet files, and in CSV files with headers and no line ends in values."""
    return sum(_rows(path) for path in files)


def _rows(path: Path) -> int:
    if path.suffix == ".parquet":
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    lines = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
    return max(lines - 1, 0)


def check_rows(files: Sequence[Path], rows: int) -> None:
    """Raise if the files do not hold so many rows: a run that lost rows does not count."""
    found = count_rows(files)
    if found != rows:
        raise RuntimeError(f"{found} rows are in {len(files)} files, and {rows} were wanted")


def check_contents(
    files: Sequence[Path], source: Path, table: TableSchema, keys: pa.Array | None = None
) -> None:
    """Raise if the files do not hold the rows of `source`, in any order, value for value.

    With `keys`, only the rows of those keys. Columns have types that pyarrow reads from CSV, and
    the first column of the table's key identifies a row.
    """
    key = table.partition_key[0]
    expected = _read(source, table)
    if keys is not None:
        expected = expected.filter(pc.is_in(expected[key], keys))
    parts = [_read(path, table).select(expected.column_names) for path in files]
    found = pa.concat_tables(parts).sort_by(key)
    expected = expected.sort_by(key)
    if found.num_rows != expected.num_rows:
        raise RuntimeError(f"{found.num_rows} rows were read, of {expected.num_rows}")
    for name in expected.column_names:
        if found[name] != expected[name]:
            raise RuntimeError(f"column {name} is not what was loaded")


def _read(path: Path, table: TableSchema) -> pa.Table:
    types = {name: cql_type.arrow() for name, cql_type in table.types.items()}
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).cast(
            pa.schema([(name, types[name]) for name in pyarrow.parquet.read_schema(path).names])
        )
    convert = pyarrow.csv.ConvertOptions(column_types=types)
    return pyarrow.csv.read_csv(path, convert_options=convert)
