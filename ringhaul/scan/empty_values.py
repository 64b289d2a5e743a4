"""Write empty values to Parquet, whose numbers, times and ids cannot be empty."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.spell import json_of
from ringhaul.errors import OutputUnusable
from ringhaul.option_names import job_option
from ringhaul.query.select import Select
from ringhaul.scan.odd_rows import key_text


def unmarked(select: Select, batch: pa.RecordBatch, marked: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of `marked`, made by `Select.project_marked`, in the forms of their types.

    `batch`: the rows as read. Types written as text (decimal, inet, varint) keep their marks.
    Raises `OutputUnusable`, naming column and key, for a row with a value that Parquet cannot hold.
    """
    plain = select.project(batch)
    columns = []
    for name, kind, with_marks, column in zip(
        select.names, select.types, marked.columns, plain.columns, strict=True
    ):
        if with_marks.type == kind.arrow():
            columns.append(with_marks)
            continue
        texts = (json_of(kind, form).fill_null("null") for form in (with_marks, column))
        differs = pc.not_equal(*texts)
        row = pc.index(differs, True).as_py()
        if row >= 0:  # -1 if the condition excludes such rows
            raise OutputUnusable(
                f"column {name}: the row with {key_text(select, batch, row)} has an empty value of "
                f"type {kind}, which is not null and cannot be written to Parquet "
                f"({pc.sum(differs)} such rows in this page); unload to CSV or JSON Lines, where "
                f"it is spelt 0x, or leave the column out with {job_option('query')}"
            )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, list(select.names))
