"""The result of a query or a count: a table for people, or CSV, JSON or Parquet for programs."""

from __future__ import annotations

import io
import json
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from producer.stdout import let_go_of_stdout
from ringhaul.errors import OutputUnusable

#: Rows of a table on a terminal; a result with more is meant for a file.
ROWS_SHOWN = 1000


def print_result(table: pa.Table, form: str, path: str | None) -> None:
    """Write the result to the file at `path`, or to standard output.

    `form`: table, csv, json (JSON Lines), parquet, or auto: a table on a terminal, else csv, and in
    a file what its suffix says. Raises `OutputUnusable` (disk full), and BrokenPipeError where
    nobody reads standard output.
    """
    data = _bytes(table, _form(form, path))
    try:
        if path is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _write_whole(Path(path), data)
    except BrokenPipeError:
        raise
    except OSError as error:
        if path is None:
            let_go_of_stdout()
        where = path or "standard output"
        raise OutputUnusable(
            f"{where}: the result cannot be written: {error.strerror or error}"
        ) from error


def _write_whole(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _form(form: str, path: str | None) -> str:
    if form != "auto":
        return form
    if path is not None:
        suffix = Path(path).suffix.lstrip(".").lower()
        return {"json": "json", "jsonl": "json", "parquet": "parquet"}.get(suffix, "csv")
    return "table" if sys.stdout.isatty() else "csv"


def _bytes(table: pa.Table, form: str) -> bytes:
    if form == "table":
        return _drawn(table).encode()
    if form == "json":
        lines = [json.dumps(row, default=_plain) for row in _rows(table)]
        return "".join(f"{line}\n" for line in lines).encode()
    sink = io.BytesIO()
    if form == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, sink)
    else:
        _write_csv(table, sink)
    return sink.getvalue()


def _write_csv(table: pa.Table, sink: BinaryIO) -> None:
    import csv

    text = io.TextIOWrapper(sink, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in _rows(table):
        writer.writerow([_text(value) for value in row.values()])
    text.flush()
    text.detach()


def _drawn(table: pa.Table) -> str:
    """Columns as wide as their widest value; numbers to the right."""
    shown = [[_text(value) for value in row.values()] for row in _rows(table.slice(0, ROWS_SHOWN))]
    right = [_numeric(field.type) for field in table.schema]
    widths = [
        max([len(name), *(len(row[i]) for row in shown)])
        for i, name in enumerate(table.column_names)
    ]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return (" " + "  ".join(padded)).rstrip()

    lines = [line(list(table.column_names)), " " + "  ".join("-" * width for width in widths)]
    lines += [line(row) for row in shown]
    if table.num_rows > ROWS_SHOWN:
        lines.append(f" ... {table.num_rows - ROWS_SHOWN:,} more rows (--format csv shows all)")
    return "\n".join(lines) + "\n"


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _numeric(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_decimal(data_type)
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, float):
        return repr(value)
    plain = _plain(value)
    return plain if isinstance(plain, str) else str(plain)


def _plain(value: Any) -> Any:
    """What JSON does not know, as text."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Decimal):
        whole = value.as_tuple().exponent == 0
        return int(value) if whole else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
