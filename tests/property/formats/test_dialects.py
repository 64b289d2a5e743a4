"""Dumps by the rules of other programs are read, and files written for them are read back."""

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import read_header
from ringhaul.formats.presets import PRESETS, input_options, output_options
from ringhaul.formats.split import START, Position, read_blocks, split_units
from ringhaul.formats.write import OutputFormat
from ringhaul.formats.write.writer import open_writer

NAMES = ["id", "flag", "note"]
#: Characters that are special in some dialect, and texts that could be read as null.
values = st.none() | st.one_of(
    st.sampled_from(
        ["", "N", "Y", "\\N", "\\\\N", "NULL", "\\", "\\.", "\ufeffx", '"\\N"', "\\x41"]
    ),
    st.text(st.sampled_from("ab N\\\t\n\r,;\"'\x00\x01\x08\x0b\x0c\x1a01xnrZ.é😀"), max_size=8),
)
tables = st.lists(st.tuples(values, values, values), min_size=1, max_size=6)
Row = tuple[str | None, ...]


def dialect_of(name: str, **given: Any) -> tuple[CsvDialect, bool]:
    own = {"quote": "", "escape": "", **given}
    preset = input_options(name, set(given), quote=own["quote"], escape=own["escape"])
    found: dict[str, Any] = {**given, **preset}
    header = bool(found.pop("header"))
    for option in ("quote", "escape"):
        found[option] = found[option] or None
    return CsvDialect(**found), header  # type: ignore[arg-type]


def rows_in(data: bytes, dialect: CsvDialect, header: bool, unit_bytes: int) -> list[Row]:
    """The rows, read in units of `unit_bytes`, each by itself."""
    start = START
    if header:
        names, start = read_header(io.BytesIO(data), dialect)
        assert names == NAMES
    found: list[Row] = []
    stream = io.BytesIO(data)
    stream.seek(start.offset_bytes)
    for unit in split_units(stream, dialect, unit_bytes=unit_bytes, start=start):
        end = unit.offset_bytes + unit.length_bytes
        part = io.BytesIO(data[unit.offset_bytes : end])
        place = Position(unit.offset_bytes, unit.first_ordinal, unit.first_line)
        for block in read_blocks(part, dialect, block_bytes=unit_bytes, start=place):
            read = read_block(block, dialect, NAMES, NAMES)
            assert not read.rejects
            columns = [column.to_pylist() for column in read.columns]
            found += [
                tuple(None if cell is None else cell.decode() for cell in row)
                for row in zip(*columns, strict=True)
            ]
    return found


def mysql(rows: list[Row], enclosed: bool) -> bytes:
    """Texts as SELECT ... INTO OUTFILE writes them: an escape before itself, NUL as 0, the first
    character of the line's end, and that of the field's end, or the quote where there is one."""

    def spelt(value: str | None) -> str:
        if value is None:
            return "\\N"
        special = '\\\n"' if enclosed else "\\\n\t"
        text = "".join(f"\\{c}" if c in special else c for c in value).replace("\0", "\\0")
        return f'"{text}"' if enclosed else text

    return "".join("\t".join(map(spelt, row)) + "\n" for row in rows).encode()


def postgresql(rows: list[Row]) -> bytes:
    """Texts as COPY TO writes them; PostgreSQL's texts hold no NUL."""
    letters = {8: "b", 12: "f", 10: "n", 13: "r", 9: "t", 11: "v", 92: "\\"}
    table = {code: f"\\{letter}" for code, letter in letters.items()}
    lines = ("\t".join("\\N" if v is None else v.translate(table) for v in row) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def written(rows: list[Row], fmt: OutputFormat) -> bytes:
    stream = io.BytesIO()
    writer = open_writer(fmt, stream, NAMES, [CqlType("text")] * 3)
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    writer.write(pa.RecordBatch.from_arrays(columns, NAMES))
    writer.close()
    return stream.getvalue()


@settings(max_examples=300, deadline=None)
@given(tables, st.booleans(), st.integers(1, 30))
@example([("1", "N", "one\ttwo"), ("2", "Y", None), ("3", "\\N", "a\r\nb")], False, 1)
def test_dumps_of_mysql(rows: list[Row], enclosed: bool, unit_bytes: int) -> None:
    # A byte order mark at the start of a file is not part of a text.
    rows = [("1", *row[1:]) for row in rows]
    dialect, header = dialect_of("mysql", **({"quote": '"'} if enclosed else {}))
    assert rows_in(mysql(rows, enclosed), dialect, header, unit_bytes) == rows


@settings(max_examples=300, deadline=None)
@given(tables, st.integers(1, 30), st.booleans())
def test_dumps_of_postgresql(rows: list[Row], unit_bytes: int, old: bool) -> None:
    rows = [("1", *(v and v.replace("\0", "") for v in row[1:])) for row in rows]
    data = postgresql(rows) + (b"\\.\n" if old else b"")
    assert rows_in(data, *dialect_of("postgresql"), unit_bytes) == rows


@settings(max_examples=200, deadline=None)
@given(tables, st.integers(1, 30))
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mysql", {}),
        ("mysql", {"quote": '"'}),
        ("mysql", {"quote": '"', "delimiter": ","}),
        ("mysql", {"null": "NULL"}),
        ("postgresql", {}),
        ("postgresql", {"delimiter": "|", "null": "NULL"}),
        ("hive", {"escape": "\\"}),
        ("excel", {}),
        ("excel", {"delimiter": ";"}),
        ("excel", {"escape": "\\", "escape_style": "quoted"}),
        ("mysql", {"escape_style": "c"}),
        ("mysql", {"escape_style": "plain"}),
        ("mysql", {"escape": "", "quote": "'"}),
    ],
)
def test_files_written_by_a_preset_are_read_back_by_it(
    name: str, options: dict[str, str], rows: list[Row], unit_bytes: int
) -> None:
    fmt = OutputFormat(**output_options(name, options))
    assert OutputFormat.from_json(fmt.to_json()) == fmt
    data = written(rows, fmt)
    given = {key: value for key, value in options.items() if key != "null"}
    if "null" in options:
        given["null_strings"] = (options["null"],)  # type: ignore[assignment]
    dialect, header = dialect_of(name, **given, allow_nul=True)
    assert rows_in(data, dialect, header, unit_bytes) == rows
    # The same from a manifest.
    assert rows_in(data, fmt.dialect, header, unit_bytes) == rows


@settings(max_examples=200, deadline=None)
@given(tables)
def test_hive_without_an_escape_refuses_what_it_cannot_hold(rows: list[Row]) -> None:
    fmt = OutputFormat(**output_options("hive", {}))
    try:
        data = written(rows, fmt)
    except OutputUnusable as error:
        assert "give --escape" in str(error)
        cells = [cell for row in rows for cell in row if cell is not None]
        assert any(cell == "\\N" or set(cell) & set("\x01\r\n\ufeff") for cell in cells)
        return
    assert rows_in(data, *dialect_of("hive", allow_nul=True), 20) == rows


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"escape": "\\", "null_strings": ("N",)}, r"'N' with the escape .* give --null '\\N'"),
        ({"null_strings": (",",)}, "holds the delimiter"),
        ({"null_strings": ('"x',)}, "a quoted field is never null"),
        ({"escape": "\\", "null_strings": ("\\",)}, "ends with the escape"),
        ({"comment": "#", "null_strings": ("#",)}, "is the comment character"),
        ({"escape": "\\", "escape_style": "c", "delimiter": "n"}, "means another character"),
        ({"escape_style": "d"}, "escape_style: 'd' is not one of plain, c, mysql"),
        ({"escape": "\\", "escape_style": "quoted", "quote": None}, "there is no quote"),
    ],
)
def test_contradictory_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CsvDialect(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quote": ""}, "cannot be distinguished from null"),
        (
            {"escape": "\\", "escape_style": "c", "null": "\\n"},
            "may also be another text, written with",
        ),
        (
            {"escape": "\\", "escape_style": "c", "quote": "", "null": "n"},
            "cannot be distinguished from",
        ),
    ],
)
def test_contradictory_options_of_an_output_are_refused(
    options: dict[str, str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        OutputFormat(**options)


def test_presets_have_the_delimiters_of_their_programs() -> None:
    assert {name: preset.delimiter for name, preset in PRESETS.items()} == {
        **{"mysql": "\t", "postgresql": "\t", "hive": "\x01", "excel": ","}
    }
    assert written([("1", "é", None)], OutputFormat(**output_options("excel", {}))) == (
        "\ufeffid,flag,note\r\n1,é,\r\n".encode()
    )
