"""Tables in memory become Parquet files, and files become tables. Only this module and the modules
that it imports use pyarrow, which is imported when a table is given or wanted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringhaul.client.audit import Audit
from ringhaul.client.columns import column
from ringhaul.client.errors import OutputError, UsageError
from ringhaul.client.frames import frame_tables, is_frame, is_pandas
from ringhaul.client.growing import write_growing
from ringhaul.client.records import record_tables

if TYPE_CHECKING:
    import pyarrow as pa

    from ringhaul.client.results import Reject

#: An attribute of other data that is not a table yet -> how that becomes a table.
_REMEDIES = {
    "toArrow": "give its .toArrow()",
    "compute": "give its .compute()",
    "collect": "give its .collect()",
    "to_pyarrow_batches": "give its .to_pyarrow_batches()",
    "scanner": "give its .scanner().to_reader()",
    "to_reader": "give its .to_reader()",
    "dtype": "give pandas.DataFrame of it, with the names of the columns",
    "items": "give pyarrow.table of it, if its values are columns, or [it], if it is one record",
}
_KINDS = "a table (Arrow, pandas, Polars, dictionaries)"


def require_pyarrow() -> None:
    """Raise `UsageError` if there is no pyarrow, before a command does work for a table."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "tables need pyarrow, which is not installed here: pip install pyarrow"
        ) from error


def is_table(data: object) -> bool:
    """Return whether the data is in memory: a frame (see `is_frame`), or records, frames or batches
    in a list or another iterable. False: names of files, or nothing that can be loaded."""
    if isinstance(data, str | bytes | os.PathLike):
        return False
    if is_frame(data):
        return True
    if isinstance(data, Sequence):
        return bool(data) and not isinstance(data[0], str | bytes | os.PathLike)
    return isinstance(data, Iterable) and not _remedy(data)


def _remedy(data: object) -> str:
    """Return how an object becomes a table; empty: it may be a table, or is nothing like it."""
    if isinstance(data, Iterator):
        return ""
    return next((words for name, words in _REMEDIES.items() if hasattr(data, name)), "")


def noun(data: object) -> str:
    """Return what messages call data in memory."""
    if is_pandas(data) or type(data).__name__ == "DataFrame":
        return "the frame"
    return "the list" if isinstance(data, list | tuple) else "the table"


def file_names(data: object) -> list[str]:
    """Return the paths, globs and URLs that the caller named. Raises `UsageError` for anything
    else."""
    names = [data] if isinstance(data, str | os.PathLike) else data
    if not isinstance(names, Sequence) or not names:
        remedy = _remedy(data) or f"give {_KINDS}, or one or several paths or URLs"
        empty = isinstance(data, Sequence) and not data
        what = "it is empty, so it has no column" if empty else "it cannot be loaded as it is"
        raise UsageError(f"{type(data).__name__}: {what}; {remedy}")
    found = []
    for name in names:
        if not isinstance(name, str | os.PathLike):
            raise UsageError(f"{name!r} is neither a path nor a URL")
        text = os.fsdecode(name)
        if text in ("", "-"):
            raise UsageError("a call reads no standard input: give a path, a URL or a table")
        found.append(text)
    return found


def write_table(data: Any, path: Path, *, checked: bool = False) -> None:
    """Write data in memory as a Parquet file, in bounded memory if it is a stream.

    `checked`: count what is given, and compare the file with that. Raises `UsageError` for values
    that cannot be loaded, and if there is no pyarrow. Errors of the caller's generator pass.
    """
    require_pyarrow()
    import pyarrow as pa

    audit = Audit() if checked else None
    try:
        write_growing(_tables(data, audit), path)
        if audit is not None:
            audit.check(path)
    except pa.ArrowException as error:
        raise UsageError(f"{noun(data)} cannot be written as Parquet: {error}") from error
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(path)):
            raise  # the caller's generator failed
        raise OutputError(
            f"{noun(data)} cannot be written to a temporary file in {path.parent.parent} "
            f"({error.strerror}): make room, or set TMPDIR"
        ) from error


def _tables(data: Any, audit: Audit | None) -> Iterator[pa.Table]:
    """Yield the tables of frames, or of records, one after the other."""
    if is_frame(data):
        yield from _of_frame(data, audit)
        return
    items = iter(data)
    try:
        first = next(items)
    except StopIteration:
        raise UsageError(
            f"{type(data).__name__}: it gives no record, so there is no column to load"
        ) from None
    items = chain([first], items)
    if is_frame(first):
        for frame in items:
            if not is_frame(frame):
                raise UsageError(f"a {type(frame).__name__} among tables: give tables only")
            yield from _of_frame(frame, audit)
        return
    if isinstance(first, str | bytes | os.PathLike):
        raise UsageError(f"{type(data).__name__} of paths: give a list of them")
    yield from record_tables(items if audit is None else audit.records(items))


def _of_frame(frame: Any, audit: Audit | None) -> Iterator[pa.Table]:
    yield from frame_tables(frame)
    if audit is not None and is_pandas(frame):
        audit.frame(frame)


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
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    named = zip(columns, values, strict=True)
    write_table(pa.table({name: column(each, name, 1) for name, each in named}), path)


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


def reject_table(rejects: Iterable[Reject]) -> pa.Table:
    """Return records of rejects as a table."""
    import pyarrow as pa

    names = ("file", "stage", "column", "reason")
    schema = pa.schema(
        [
            *((name, pa.string()) for name in names),
            *(("line", pa.int64()), ("offset", pa.int64()), ("data", pa.binary())),
        ]
    )
    return pa.Table.from_pylist([vars(reject) for reject in rejects], schema)
