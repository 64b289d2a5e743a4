"""Each option times each type: a field of a file is its value, and is written as expected."""

from __future__ import annotations

import io
from typing import Any

from producer.request.input_format import dialect_of, text_of
from producer.request.output import output_of
from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.nested import encode_column
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.split import START, read_blocks
from ringhaul.formats.write.writer import open_writer
from ringhaul.records.blanks import without_blanks, without_empties
from tests.cases import each
from tests.options import parse_options
from tests.property.cql.pages import PROTOCOL, driver_type, page
from tests.value_cases import PAIR, TABLES, Bad, Case, Table

CASES = [(name, case) for name, table in TABLES.items() for case in table.cases]
BAD = [(name, bad) for name, table in TABLES.items() for bad in table.bad]


def kind_of(case: Case | Bad) -> CqlType:
    return parse_type(case.kind, {"pair": PAIR})


def read(table: Table, kind: CqlType, field: str) -> tuple[bytes | None, str]:
    """Return the cell of a field, and why it is refused."""
    options = parse_options("load", "a.csv", "-t", "k.t", *table.both, *table.reading)
    dialect, text = dialect_of(options), text_of(options)
    lines = [*table.noise, f"1{table.delimiter}{field}"]
    data = "\n".join(lines).encode(table.encoding)
    if dialect.decoding == "stream":
        data = data.decode(table.encoding).encode()
    (block,) = read_blocks(io.BytesIO(data), dialect, block_bytes=2**16, start=START)
    kept = {"v"} if kind.name in ("text", "varchar", "ascii") else set()
    found = read_block(block, dialect, ["n", "v"], ["v"], kept if "" not in nulls(dialect) else ())
    assert not found.rejects
    values = without_empties(kind, found.columns[0])
    column = encode_column(kind, values, text, null_length=NULL_LENGTH)
    if column.faults:
        blank = without_blanks(kind, values, column.faults)
        if blank is not None:
            column = encode_column(kind, blank, text, null_length=NULL_LENGTH)
    if column.faults:
        return None, column.faults[0].words("v")
    cell = column.cells.values[0].as_py() if column.cells.lengths[0] >= 0 else None
    return cell, ""


def nulls(dialect: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = dialect.null_strings
    return found


def cell_of(kind: CqlType, value: Any) -> bytes | None:
    """Return what the driver makes of a value."""
    cell: bytes | None = None if value is None else driver_type(kind).to_binary(value, PROTOCOL)
    return cell


@each(("name", "case"), CASES)
def test_a_field_is_its_value(name: str, case: Case) -> None:
    kind = kind_of(case)
    assert read(TABLES[name], kind, case.field) == (cell_of(kind, case.value), "")


@each(("name", "case"), CASES)
def test_a_value_is_written_as_its_field_and_read_again(name: str, case: Case) -> None:
    table, kind = TABLES[name], kind_of(case)
    given = ("-t", "k.t", "-o", "out/", "--no-header", *table.both, *table.writing)
    fmt = output_of(parse_options("unload", *given), None, "ul-1").format  # type: ignore[arg-type]
    cell = cell_of(kind, case.value)
    kinds = [CqlType("int"), kind]
    batch = PageDecoder(["n", "v"], kinds).decode(page([[bytes(4)], [cell]]))
    stream = io.BytesIO()
    writer = open_writer(fmt, stream, ["n", "v"], kinds)
    writer.write(batch)
    writer.close()
    text = stream.getvalue().decode(table.encoding)
    line_end = "\r\n" if "crlf" in table.writing else "\n"
    first = '"0"' if "--quote-all" in table.writing else "0"
    assert text == f"{first}{table.delimiter}{case.unloaded}{line_end}"
    assert read(table, kind, case.unloaded) == (cell, "")


@each(("name", "bad"), BAD)
def test_what_is_no_value_is_refused_with_the_reason(name: str, bad: Bad) -> None:
    _, reason = read(TABLES[name], kind_of(bad), bad.field)
    assert bad.reason in reason


def test_every_scalar_type_has_cases_in_both_directions() -> None:
    from ringhaul.cql.text import ENCODERS

    for kinds in ({case.kind for _, case in CASES}, {bad.kind for _, bad in BAD}):
        assert set(ENCODERS) - kinds <= {"text", "varchar", "smallint"}
