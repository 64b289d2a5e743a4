"""Options for where rows and results go, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass

from producer.options.spelling import ValueSpelling


@dataclass(frozen=True, kw_only=True)
class RowsOutput(ValueSpelling):
    """Where rows are written, and how. None: the format's default."""

    output: str  #: a folder, its URL, or - for standard output
    format: str | None
    compression: str | None
    header: bool | None
    delimiter: str | None
    quote: str | None
    null: str | None
    escape: str | None
    escape_style: str | None
    dialect: str | None
    max_rows_per_file: int | None
    max_file_size: str | None
    order: str
    quote_all: bool = False
    empty_word: str | None = None
    comment: str | None = None
    trim: str | None = None
    encoding: str | None = None
    line_end: str | None = None
    json_layout: str | None = None
    json_nulls: bool | None = None
    decimal_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResultPlace:
    """Where a result goes, and in which format. None: not given."""

    output: str | None = None
    result_format: str | None = None
