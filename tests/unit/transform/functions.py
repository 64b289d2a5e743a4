"""Transforms for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ringhaul.transform.chain import Chain, Transform


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def chain_of(*functions: Any, names: Sequence[str] | None = None) -> Chain:
    """The functions under the names t:0, t:1, ..."""
    return Chain([Transform(f"t:{i}", f) for i, f in enumerate(functions)], names)


def rows_of(
    chain: Chain, batch: pa.RecordBatch
) -> tuple[list[tuple[int, Mapping[str, Any]]], dict[int, str]]:
    """(record, row) of all results without those of failed records, and the errors."""
    rows, errors = [], {}
    for applied in chain.run(batch):
        errors |= applied.errors
        for piece in applied.pieces:
            columns = {
                name: column if isinstance(column, list) else column.to_pylist()
                for name, column in piece.columns.items()
            }
            for place, record in enumerate(piece.rows.tolist()):
                assert applied.first <= record < applied.end
                rows.append((record, {name: values[place] for name, values in columns.items()}))
    return [(record, row) for record, row in rows if record not in errors], errors


def raising_on(column: str, *values: Any) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function that returns each batch, but raises if it has one of these values."""

    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        for value in batch.column(column).to_pylist():
            if value in values:
                raise ValueError(f"{value} it is")
        return batch

    return run
