"""Print the result of a query or a count: a table for people, or CSV, JSON or Parquet."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import BinaryIO

import pyarrow as pa

from producer.outputs.stdout import let_go_of_stdout
from producer.outputs.whole_file import replacing
from producer.request.output import STDOUT
from ringhaul.cql.spell import json_of, json_strings, text_of
from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.formats.suffixes import format_of
from ringhaul.formats.write.csv import CsvLines
from ringhaul.formats.write.lines import LineWriter
from ringhaul.formats.write.options import OutputFormat
from ringhaul.plain_text import as_line, in_json

#: How many rows a table on a terminal shows; a file has them all.
ROWS_SHOWN = 1000
#: How a table shows null, as in cqlsh, to distinguish it from an empty text.
NULL_SHOWN = "null"


def print_result(
    table: pa.Table,
    types: Sequence[CqlType],
    form: str,
    path: str | None,
    *,
    vertical: bool = False,
) -> None:
    """Write the result to the file at `path`, or to standard output (None or "-").

    `types`: CQL types of the columns, whose Arrow types match or come from `numeric`.
    `form`: table, csv, json (JSON Lines), parquet, or auto: by the suffix of a file, a table on a
    terminal, else csv. `vertical`: a table that is wider than the terminal has a line for each
    value. Raises `OutputUnusable` (disk full), and BrokenPipeError if standard output
    is closed.
    """
    if path == STDOUT:
        path = None
    shown = path is None and sys.stdout.isatty()
    width_max = shutil.get_terminal_size().columns if shown and vertical else None
    data = _bytes(table, types, _form(form, path), shown=shown, width_max=width_max)
    try:
        if path is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            # Atomic and synced: the result now counts as delivered, and its job is forgotten later.
            with replacing(path) as out:
                out.write(data)
    except OSError as error:
        if path is None:
            if isinstance(error, BrokenPipeError):
                raise
            let_go_of_stdout()
        where = path or "standard output"
        raise OutputUnusable(
            f"{where}: the result cannot be written: {error.strerror or error}"
        ) from error


def _form(form: str, path: str | None) -> str:
    if form != "auto":
        return form
    if path is not None:
        by_suffix = format_of(path)
        return "json" if by_suffix == "jsonl" else by_suffix
    return "table" if sys.stdout.isatty() else "csv"


def _bytes(
    table: pa.Table,
    types: Sequence[CqlType],
    form: str,
    *,
    shown: bool,
    width_max: int | None = None,
) -> bytes:
    """Return the result in `form`. `shown`: it goes to a terminal. `width_max`: most columns of a
    table's line; a wider table has a line for each value."""
    if form == "table":
        rows_max = ROWS_SHOWN if shown else table.num_rows
        drawn = _drawn(table, types, rows_max)
        if width_max is not None and max(map(len, drawn.splitlines())) > width_max:
            drawn = _vertical(table, types, rows_max)
        return drawn.encode()
    if form == "json":
        lines = _json_lines(table, types)
        return (in_json(lines) if shown else lines).encode()
    sink = io.BytesIO()
    if form == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, sink)
    else:
        _write_csv(table, types, sink)
    return sink.getvalue()


def _json_lines(table: pa.Table, types: Sequence[CqlType]) -> str:
    names = json_strings(pa.array(table.column_names, pa.string())).to_pylist()
    columns = []
    for name, cql_type, column in zip(names, types, table.columns, strict=True):
        if cql_type.name == "varint":  # may be text, if the values fit in none of Arrow's decimals
            texts = [None if value is None else str(value) for value in column.to_pylist()]
        elif column.type == cql_type.arrow():
            texts = json_of(cql_type, column.combine_chunks()).to_pylist()
        else:
            texts = [_json_number(value) for value in column.to_pylist()]
        columns.append([f"{name}: {'null' if text is None else text}" for text in texts])
    return "".join(f"{{{', '.join(row)}}}\n" for row in zip(*columns, strict=True))


def _json_number(value: Decimal | None) -> str | None:
    """Return a number as JSON; one with decimals as a string, since many readers lose digits."""
    if value is None or value.as_tuple().exponent == 0:
        return None if value is None else str(value)
    return f'"{value}"'


def _write_csv(table: pa.Table, types: Sequence[CqlType], sink: BinaryIO) -> None:
    """Write CSV as `unload` does, except that a row of a single null is a blank line."""
    names, spelt = table.column_names, _texts(table, types)
    fmt = OutputFormat()
    writer = LineWriter(fmt, sink, CsvLines(fmt, names, [CqlType("text")] * len(names)))
    writer.write(pa.RecordBatch.from_arrays(spelt, names))
    writer.close()


def _drawn(table: pa.Table, types: Sequence[CqlType], rows_max: int) -> str:
    """Return a text table with columns as wide as their widest value; numbers right-aligned."""
    shown = _rows(table.slice(0, rows_max), types)
    right = [_numeric(field.type) for field in table.schema]
    names = [as_line(name) for name in table.column_names]
    widths = [max([len(name), *(len(row[i]) for row in shown)]) for i, name in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return (" " + "  ".join(padded)).rstrip()

    lines = [line(names), " " + "  ".join("-" * width for width in widths)]
    lines += [line(row) for row in shown]
    if table.num_rows > rows_max:
        lines.append(_more_rows(table, rows_max))
    return "\n".join(lines) + "\n"


def _vertical(table: pa.Table, types: Sequence[CqlType], rows_max: int) -> str:
    """Return a text with a line for each value, under a line for each row."""
    names = [as_line(name) for name in table.column_names]
    width = max(map(len, names))
    lines = []
    for number, row in enumerate(_rows(table.slice(0, rows_max), types), 1):
        lines.append(f" row {number}")
        lines += [
            f"  {name:<{width}}  {text}".rstrip() for name, text in zip(names, row, strict=True)
        ]
    if table.num_rows > rows_max:
        lines.append(_more_rows(table, rows_max))
    return "\n".join(lines) + "\n"


def _more_rows(table: pa.Table, rows_max: int) -> str:
    return f" ... {table.num_rows - rows_max:,} more rows (--format csv shows all)"


def _rows(table: pa.Table, types: Sequence[CqlType]) -> list[tuple[str, ...]]:
    """Return the texts of each row."""
    columns = [
        [as_line(text) for text in spelt.fill_null(NULL_SHOWN).to_pylist()]
        for spelt in _texts(table, types)
    ]
    return list(zip(*columns, strict=True))


def _texts(table: pa.Table, types: Sequence[CqlType]) -> list[pa.StringArray]:
    """Return the values of each column as text, in the format of `unload`."""
    columns = []
    for cql_type, column in zip(types, table.columns, strict=True):
        if column.type == cql_type.arrow():
            columns.append(text_of(cql_type, column.combine_chunks()))
        else:  # varint and decimal as numbers
            texts = [None if value is None else str(value) for value in column.to_pylist()]
            columns.append(pa.array(texts, pa.string()))
    return columns


def _numeric(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_decimal(data_type)
    )
