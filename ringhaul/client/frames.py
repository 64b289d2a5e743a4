"""DataFrames of pandas and Polars, Arrow tables and streams as tables of Arrow. Uses pyarrow.

What a frame has beside its columns, and columns that Arrow shows only as the numbers behind their
values, are either loaded as they are meant or refused with the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringhaul.client.arrow_types import check_names, plain_table
from ringhaul.client.columns import column
from ringhaul.client.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

#: Types of pandas that are refused: the beginning of their names -> what to do.
_PANDAS_REMEDIES = {
    "period": "convert it with .dt.to_timestamp() or .astype(str)",
    "interval": "make two columns, of its left and right ends",
    "Sparse": "convert it with .sparse.to_dense()",
    "complex": "make two columns, of its real and imaginary parts",
}
#: Types of Polars that no reader of Arrow knows, or whose values are addresses in memory.
_POLARS_REMEDIES = {
    "Object": "give it a type of Polars, or build the frame from texts",
    "UInt128": "cast it with .cast(pl.String)",
    "Int128": "cast it with .cast(pl.Decimal(38, 0)), or with .cast(pl.String) if it is longer",
}


def is_pandas(data: object) -> bool:
    """Return whether it is a DataFrame of pandas, which need not be installed."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.partition(".")[0] == "pandas"
        for base in type(data).__mro__
    )


def is_frame(data: object) -> bool:
    """Return whether it is a table: of pandas, Polars, Arrow, DuckDB or another library that speaks
    Arrow's C interface."""
    return is_pandas(data) or any(
        hasattr(data, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")
    )


def frame_tables(data: Any) -> Iterator[pa.Table]:
    """Yield the tables of a frame; of a stream they are its batches. Raises `UsageError` for a
    column that cannot be loaded."""
    import pyarrow as pa

    if is_pandas(data):
        yield plain_table(_of_pandas(data))
        return
    if type(data).__module__.partition(".")[0] == "polars":
        _check_polars(data)
    reader = _reader(data)
    check_names(reader.schema.names)
    empty = True
    for batch in reader:
        empty = False
        yield plain_table(pa.Table.from_batches([batch]))
    if empty:  # its columns
        yield plain_table(pa.Table.from_batches([], reader.schema))


def _reader(data: Any) -> pa.RecordBatchReader:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatchReader):
        return data  # errors of the caller's generator pass through
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.Array | pa.ChunkedArray) or hasattr(data, "to_frame"):
        raise UsageError(
            f"{type(data).__name__}: one column is no table; give it a name, such as with "
            ".to_frame('id') or pa.table({'id': ...})"
        )
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    batch = pa.record_batch(data)
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def _check_polars(frame: Any) -> None:
    """Raise `UsageError` for columns whose values Arrow does not get."""
    for name, kind in getattr(frame, "schema", {}).items():
        for word, remedy in _POLARS_REMEDIES.items():
            if word in str(kind):
                raise UsageError(
                    f"column {name!r} has the type {kind} of Polars, which cannot be loaded: "
                    f"{remedy}"
                )


def _of_pandas(frame: Any) -> pa.Table:
    import pyarrow as pa

    if frame.columns.nlevels > 1:
        raise UsageError(
            "the names of the columns have several levels: join them first, such as with "
            "frame.columns = ['_'.join(map(str, one)) for one in frame.columns]"
        )
    names = [str(name) for name in frame.columns]
    check_names([*names, *_index_names(frame, names)] or names)
    given = {name: frame.iloc[:, place] for place, name in enumerate(names)}
    for place, name in enumerate(_index_names(frame, names)):
        given[name] = frame.index.get_level_values(place).to_series()
    return pa.table({name: _series(series, name) for name, series in given.items()})


def _index_names(frame: Any, names: list[str]) -> list[str]:
    """Return the names of the index's levels, which become columns; none for a numbering.

    Raises `UsageError` for an index whose values would be dropped.
    """
    index = frame.index
    levels = list(index.names)
    if all(name is not None for name in levels):
        found = [str(name) for name in levels]
        both = [name for name in found if name in names]
        if both:
            raise UsageError(
                f"{both[0]!r} is the name of a column and of the index: rename one, or drop the "
                "index with .reset_index(drop=True)"
            )
        return found
    if len(levels) > 1 or index.dtype.kind not in "iu":
        which = "a level of the index has" if len(levels) > 1 else "the index has values and"
        raise UsageError(
            f"{which} no name, so no column takes its values: name it (frame.index.names = [...]), "
            "or drop it with .reset_index(drop=True)"
        )
    return []


def _series(series: Any, name: str) -> Any:
    """Return a column of pandas as an array. NaN in it means a missing value."""
    import pyarrow as pa

    kind = getattr(series.dtype, "categories", series).dtype
    for start, remedy in _PANDAS_REMEDIES.items():
        if str(kind).startswith(start):
            raise UsageError(
                f"column {name!r} has the type {kind} of pandas, which cannot be loaded: {remedy}"
            )
    if series.dtype == object:
        return column(series.tolist(), name, 1, nan_is_null=True)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"column {name!r}: {error}") from error
