"""Options for how text is written: the values in it, and the records of an input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ValueSpelling:
    """How values are spelled in text, whether it is read or written; see `TextFormat`."""

    timestamp_formats: tuple[str, ...] = ()
    date_formats: tuple[str, ...] = ()
    time_formats: tuple[str, ...] = ()
    epoch_unit: str = ""
    epoch: str = "1970-01-01"
    timezone: str = "UTC"
    clock_changes: str = ""
    locale: str = "en"
    true_words: str | None = None
    false_words: str | None = None
    blob: str = "hex"
    decimal_sep: str = "."
    thousands_sep: str = ""


@dataclass(frozen=True, kw_only=True)
class Spelling(ValueSpelling):
    """How the input text is written."""

    file_format: str  #: auto, csv, jsonl, parquet or fixed
    header: bool
    delimiter: str
    quote: str  #: empty: none
    escape: str  #: empty: none
    comment: str  #: empty: none
    encoding: str
    null_strings: tuple[str, ...]  #: empty: an empty field
    allow_nul: bool
    dialect: str | None = None  #: name of a preset; its values are in the other fields
    header_at: str | None = None  #: a line's number, or auto
    format_profile: str | None = None  #: as `dialect`, of the settings file
    escape_style: str = "plain"
    line_end: str = "any"
    json_layout: str = "lines"
    accept: str = ""
    overflow: str = "reject"
    rounding: str = "none"
    allow_extra_fields: bool = False
    allow_missing_fields: bool = False
    null_quoted: bool = False
    trim: str = "none"  #: none, text or quoted
    empty: str | None = None  #: text, null, or COLUMN=text,...
    empty_word: str | None = None  #: stands for the empty text
    fill_empty: str | None = None  #: read in the place of an empty field
    fill_quoted: str | None = None  #: the same for one in quotes
    # Which records, and what their fields fill:
    columns: str | None = None
    columns_at: str | None = None  #: NAME:FIRST-LAST,... of fixed-width records
    layout: Path | None = None  #: or a file that says so
    mapping: str | None = None
    skip_columns: str | None = None
    skip_rows: int = 0
    max_rows: int | None = None
    rows_per: str = "input"  #: or file: what these two count
