"""Tables in memory become Parquet files, and files become tables. Only this module uses pyarrow,
which is imported when a table is given or wanted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringhaul.client.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a row group, which is the unit of work of a load.
GROUP_ROWS_MAX = 65_536
#: Bytes of a row group in memory, about.
GROUP_BYTES_MAX = 64 << 20
#: Bytes of a page. The command refuses files with pages that are too large to hold.
PAGE_BYTES_MAX = 4 << 20
#: Values of a page, if they are small.
PAGE_ROWS_MAX = 1024


def require_pyarrow() -> None:
    """Raise `UsageError` if there is no pyarrow, before a command does work for a table."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "tables need pyarrow, which is not installed here: pip install pyarrow"
        ) from error


def is_table(data: object) -> bool:
    """Return whether the data is in memory: a table of Arrow, pandas, Polars, DuckDB or another
    library that speaks Arrow's C interface, or a list of dictionaries. False: names of files."""
    if isinstance(data, str | os.PathLike):
        return False
    if isinstance(data, Sequence):
        return bool(data) and all(isinstance(row, Mapping) for row in data)
    return (
        hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__") or _is_frame(data)
    )


def _is_frame(data: object) -> bool:
    """Return whether it is a DataFrame of pandas, which need not be installed."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def file_names(data: object) -> list[str]:
    """Return the paths, globs and URLs that the caller named. Raises `UsageError` for anything
    else."""
    names = [data] if isinstance(data, str | os.PathLike) else data
    if not isinstance(names, Sequence) or not names:
        raise UsageError(
            f"{type(data).__name__}: give a table (Arrow, pandas, Polars, a list of dictionaries), "
            "or one or several paths or URLs"
        )
    found = []
    for name in names:
        if not isinstance(name, str | os.PathLike):
            raise UsageError(f"{name!r} is neither a path nor a URL")
        text = os.fsdecode(name)
        if text in ("", "-"):
            raise UsageError("a call reads no standard input: give a path, a URL or a table")
        found.append(text)
    return found


def write_table(data: Any, path: Path) -> None:
    """Write a table as a Parquet file, in bounded memory if it is a stream.

    Raises `UsageError` if its values have no type of Arrow, or there is no pyarrow.
    """
    require_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        reader = _reader(data)
        writer: pq.ParquetWriter | None = None
        try:
            for group in _groups(reader):
                if writer is None:
                    writer = _writer(path, group)
                writer.write_table(group, row_group_size=max(group.num_rows, 1))
        finally:
            if writer is not None:
                writer.close()
    except pa.ArrowException as error:
        raise UsageError(f"the table cannot be written as Parquet: {error}") from error


def _writer(path: Path, first: pa.Table) -> Any:
    import pyarrow.parquet as pq

    row_bytes = first.nbytes / max(first.num_rows, 1)
    page_rows = max(min(int(PAGE_BYTES_MAX / max(row_bytes, 1)), PAGE_ROWS_MAX), 1)
    return pq.ParquetWriter(
        path, first.schema, write_batch_size=page_rows, write_page_checksum=True
    )


def _reader(data: Any) -> pa.RecordBatchReader:
    import pyarrow as pa

    if isinstance(data, Sequence):
        return pa.Table.from_pylist(list(data)).to_reader()
    if isinstance(data, pa.Table):
        return data.to_reader()
    if _is_frame(data):
        # An index with names holds columns; one without is only a numbering.
        named = all(name is not None for name in data.index.names)
        return pa.Table.from_pandas(data, preserve_index=named).to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    batch = pa.record_batch(data)
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def _groups(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield tables of a row group's size; at least one, so that an empty stream has its columns."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    rows = size = written = 0
    for batch in reader:
        for part in _pieces(batch):
            full = rows + part.num_rows > GROUP_ROWS_MAX or size + part.nbytes > GROUP_BYTES_MAX
            if held and full:
                yield pa.Table.from_batches(held, reader.schema)
                held, rows, size, written = [], 0, 0, written + 1
            held.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
    if held or not written:
        yield pa.Table.from_batches(held, reader.schema)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of at most a row group's rows and, by their average, bytes."""
    row_bytes = batch.nbytes / max(batch.num_rows, 1)
    step = max(min(GROUP_ROWS_MAX, int(GROUP_BYTES_MAX / max(row_bytes, 1))), 1)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def write_keys(keys: object, columns: Sequence[str], path: Path) -> None:
    """Write a list of keys as a Parquet file: values of one column, or tuples of several."""
    require_pyarrow()
    import pyarrow as pa

    if not isinstance(keys, Iterable):
        raise UsageError(f"{type(keys).__name__} is not a list of keys")
    rows = [key if isinstance(key, tuple) else (key,) for key in keys]
    for row in rows:
        if len(row) != len(columns):
            raise UsageError(f"a key of {len(row)} values, {row!r}, for {len(columns)} columns")
    try:
        values = list(zip(*rows, strict=True)) or [()] * len(columns)
        table = pa.table({name: list(one) for name, one in zip(columns, values, strict=True)})
    except pa.ArrowException as error:
        raise UsageError(f"the keys have no common type: {error}") from error
    write_table(table, path)


def read_file(path: Path) -> pa.Table:
    """Return the rows of a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read()


def part_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder; sorted by name they hold the rows in their order."""
    return sorted(folder.glob("*.parquet"))


def read_parts(folder: Path) -> pa.Table:
    """Return the rows of all Parquet files of a folder."""
    import pyarrow as pa

    parts = [read_file(path) for path in part_files(folder)]
    return pa.concat_tables(parts) if parts else pa.table({})


def open_parts(folder: Path) -> pa.RecordBatchReader:
    """Return a reader over the rows of all Parquet files of a folder, in bounded memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = part_files(folder)
    if not paths:
        return pa.table({}).to_reader()

    def batches() -> Iterator[pa.RecordBatch]:
        for path in paths:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                yield from file.iter_batches()

    return pa.RecordBatchReader.from_batches(pq.read_schema(paths[0]), batches())
