"""Settle what an empty field means in each column of texts (--empty)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from producer.request.input_draft import InputDraft
from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.types import UnknownType
from ringhaul.errors import UsageError
from ringhaul.option_names import input_option
from ringhaul.records.blanks import TEXTS
from ringhaul.records.job import Input

AnyInput = TypeVar("AnyInput", bound=Input)


def with_empties(job: AnyInput, request: InputDraft) -> AnyInput:
    """Return the job with the columns in which an empty field is a text.

    Raises `UsageError` for a name that is no column of texts.
    """
    if not request.empty:
        return job
    texts = [name for name in job.table.column_names if _is_text(job.table, name)]
    for name in request.empty:
        if name is not None and name not in texts:
            option = input_option("empty")
            raise UsageError(
                f"{option}: {name!r} is no column of text, ascii or blob in {job.table.name}; in "
                f"the others an empty field is null{nearest(name, texts)}"
            )
    nulls = job.dialect.null_strings
    usual = request.empty.get(None, "" not in nulls)
    kept = tuple(name for name in texts if request.empty.get(name, usual))
    if len(kept) < len(texts) and "" not in nulls:
        nulls = (*nulls, "")
    return replace(job, dialect=replace(job.dialect, null_strings=nulls), empty_texts=kept)


def _is_text(table: TableSchema, column: str) -> bool:
    try:
        return table.parsed_type(column).name in TEXTS
    except UnknownType:
        return False
