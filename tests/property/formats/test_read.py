"""Reader and splitter agree: what pyarrow parses are the records the scanner found."""

import csv
import io
import re
from typing import NamedTuple

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringhaul.formats.csv_read import (
    TextBlock,
    decode_bytes,
    decoded_offsets,
    parse_fields,
    read_block,
)
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.records import scan_records
from ringhaul.formats.split import START, Position, read_blocks
from tests.property.formats import grammar

#: Meaning of letters after the escape character, and whether digits have one.
LETTERS: dict[str, tuple[dict[bytes, bytes], bool]] = {
    "plain": ({}, False),
    "hive": ({b"n": b"\n", b"r": b"\r"}, False),
    "mysql": (
        {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"},
        False,
    ),
    "postgresql": (
        {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"},
        True,
    ),
}
LETTERS["c"] = (LETTERS["postgresql"][0] | {b"Z": b"\x1a"}, True)
OCTAL, HEX = re.compile(rb"[0-7]{1,3}"), re.compile(rb"x([0-9A-Fa-f]{1,2})")


class Field(NamedTuple):
    text: bytes
    #: The field as in the record, with quotes and escapes.
    raw: bytes
    quoted: bool


def unescaped(record: bytes, at: int, style: str) -> tuple[bytes, int]:
    """The bytes that an escape sequence stands for, and its end."""
    letters, numbers = LETTERS[style]
    if numbers and (octal := OCTAL.match(record, at)):
        return bytes([int(octal.group(), 8) % 256]), octal.end()
    if numbers and (digits := HEX.match(record, at)):
        return bytes([int(digits.group(1), 16)]), digits.end()
    letter = record[at : at + 1]
    return letters.get(letter, letter), at + 1


def fields_of(record: bytes, dialect: CsvDialect) -> list[Field]:
    """The fields of a record by a plain second implementation of the grammar."""
    quote, escape = (-1 if c is None else ord(c) for c in (dialect.quote, dialect.escape))
    delimiter = dialect.delimiter.encode()
    fields: list[Field] = []
    text, quoted, inside, field_start = bytearray(), False, False, True
    at = begin = 0
    trim, last, last_text = dialect.trim != "none", 0, 0

    def ended(stop: int) -> Field:
        value = bytes(text[:last_text]) if trim else bytes(text)
        if dialect.trim == "quoted" and quoted:
            value = value.strip(b" \t")
        return Field(value, record[begin : last if trim else stop], quoted)

    while at < len(record):
        byte = record[at]
        if not inside and byte != escape and record.startswith(delimiter, at):
            fields.append(ended(at))
            at += len(delimiter)
            text, quoted, field_start, begin = bytearray(), False, True, at
            last, last_text = at, 0
            continue
        at += 1
        if trim and not inside and byte in b" \t":
            if field_start:
                begin = last = at
            else:
                text.append(byte)
            continue
        if dialect.escape_style == "quoted" and byte == escape:
            text.append(byte)
            if inside and record[at : at + 1] in (bytes([escape]), bytes([quote])):
                text[-1] = record[at]
                at += 1
            field_start = False
        elif byte == escape:
            meant, at = unescaped(record, at, dialect.escape_style)
            text += meant
            field_start = False
        elif inside and byte == quote and record[at : at + 1] == bytes([quote]):
            text.append(quote)
            at += 1
        elif inside and byte == quote:
            inside = False
        elif inside:
            text.append(byte)
        elif field_start and byte == quote:
            quoted, inside, field_start = True, True, False
        else:
            text.append(byte)
            field_start = False
        last, last_text = at, len(text)
    fields.append(ended(len(record)))
    return fields


def value_of(field: Field, dialect: CsvDialect) -> bytes | None:
    """The value of a field, or None if it spells null."""
    nulls = [null.encode() for null in dialect.null_strings]
    if dialect.escape_style == "mysql" and b"\\N" in nulls:
        nulls.append(b'"\\N"')
    raw, quote = field.raw, (dialect.quote or "").encode()
    if dialect.null_quoted and field.quoted:
        if not dialect.beyond_pyarrow:
            raw = field.text  # also where only a part of the field is quoted
        elif len(raw) > 1 and raw.endswith(quote):
            raw = raw[1:-1].strip(b" \t") if dialect.trim == "quoted" else raw[1:-1]
    return None if raw in nulls else field.text


def as_rows(block: TextBlock) -> dict[int, list[bytes | None]]:
    columns = [column.to_pylist() for column in block.columns]
    return {
        int(record): [column[row] for column in columns] for row, record in enumerate(block.records)
    }


@settings(max_examples=800, deadline=None)
@given(grammar.dialect_texts(), st.integers(1, 4), st.booleans(), st.booleans())
@example((CsvDialect(null_strings=("", "NULL"), null_quoted=True), b'""NULL'), 1, False, False)
def test_each_record_becomes_its_fields_or_one_reject(
    case: tuple[CsvDialect, bytes], fields_count: int, extra: bool, missing: bool
) -> None:
    plain, text = case
    options = plain.to_json() | {
        "allow_extra_fields": extra,
        "allow_missing_fields": missing,
        "allow_nul": True,
        "null_strings": [*([] if plain.trim == "text" else [""]), "bc", "NULL"]
        + ([f"{plain.escape}N"] if plain.escape else []),
    }
    dialect = CsvDialect.from_json(options)
    names = [f"f{i}" for i in range(fields_count)]
    for block in read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=START):
        if block.defect is not None:
            continue
        read = read_block(block, dialect, names, names)
        rows = as_rows(read)
        rejected = {reject.record: reject.reason for reject in read.rejects}
        assert sorted([*rows, *rejected]) == list(range(len(block.starts)))
        assert read.records.tolist() == sorted(rows)
        for record, (start, end) in enumerate(zip(block.starts, block.ends, strict=True)):
            fields = fields_of(block.data[start:end], dialect)
            values = [value_of(field, dialect) for field in fields]
            fits = len(fields) == fields_count
            if fits or (extra if len(fields) > fields_count else missing):
                padded = values + [None] * fields_count
                assert rows[record] == padded[:fields_count]
            else:
                assert rejected[record].startswith(f"has {len(fields)} field")
            assert parse_fields(block.data[start:end], dialect) == [f.text for f in fields]


@settings(max_examples=300, deadline=None)
@given(grammar.dialect_texts(), st.integers(1, 4), st.data())
def test_selected_columns_in_any_order_equal_those_of_all(
    case: tuple[CsvDialect, bytes], fields_count: int, data: st.DataObject
) -> None:
    dialect, text = case
    names = [f"f{i}" for i in range(fields_count)]
    wanted = data.draw(st.permutations(names))[: data.draw(st.integers(1, fields_count))]
    allowing = CsvDialect.from_json(dialect.to_json() | {"allow_nul": True})
    for block in read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=START):
        if block.defect is None:
            every = read_block(block, allowing, names, names)
            some = read_block(block, allowing, names, wanted)
            assert some.records.tolist() == every.records.tolist()
            assert some.rejects == every.rejects
            for name, column in zip(wanted, some.columns, strict=True):
                assert column.equals(every.columns[names.index(name)])


@settings(max_examples=200, deadline=None)
@given(grammar.dialect_texts(), st.integers(1, 3))
def test_a_nul_rejects_only_its_record(case: tuple[CsvDialect, bytes], fields_count: int) -> None:
    dialect, text = case
    names = [f"f{i}" for i in range(fields_count)]
    allowing = CsvDialect.from_json(dialect.to_json() | {"allow_nul": True})
    for block in read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=START):
        if block.defect is None:
            every = as_rows(read_block(block, allowing, names, names))
            strict = read_block(block, dialect, names, names)
            # A NUL written as an escape is intended, and is not a fault.
            holding = {
                record
                for record, row in every.items()
                for field, value in zip(
                    fields_of(block.data[block.starts[record] : block.ends[record]], dialect),
                    row,
                    strict=True,
                )
                if value is not None and b"\0" in field.raw
            }
            assert as_rows(strict) == {r: v for r, v in every.items() if r not in holding}
            with_nul = {reject.record for reject in strict.rejects if "NUL" in reject.reason}
            assert with_nul == holding


cells = st.text(st.sampled_from('ab,"\n\r#\\ é\ufeff€😀'), max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=1, max_size=8)
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 50),
)
def test_what_pythons_csv_module_writes_is_read_back(
    rows: list[list[str]], line_end: str, block_bytes: int
) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    names = [f"f{i}" for i in range(len(rows[0]))]
    dialect = CsvDialect()
    found: list[list[bytes | None]] = []
    stream = io.BytesIO(out.getvalue().encode())
    for block in read_blocks(stream, dialect, block_bytes=block_bytes, start=START):
        found += as_rows(read_block(block, dialect, names, names)).values()
    assert found == [[cell.encode() for cell in row] for row in rows]


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=60), st.sampled_from(["latin-1", "cp1252", "koi8-r", "iso8859-3", "ascii"])
)
def test_single_byte_text_is_decoded_and_undecodable_bytes_stay_invalid(
    text: bytes, encoding: str
) -> None:
    dialect = CsvDialect(encoding=encoding, quote=None, null_strings=(), allow_nul=True)
    for block in read_blocks(io.BytesIO(text), dialect, block_bytes=20, start=Position(1, 0, 1)):
        read = read_block(block, dialect, ["a"], ["a"])
        rows = as_rows(read)
        for record, (start, end) in enumerate(zip(block.starts, block.ends, strict=True)):
            raw = block.data[start:end]
            if b"," in raw:
                assert record in {reject.record for reject in read.rejects}
                continue
            (value,) = rows[record]
            assert value is not None
            try:
                assert value == raw.decode(encoding).encode()
            except UnicodeDecodeError:
                assert b"\xff" in value


@settings(max_examples=300, deadline=None)
@given(
    grammar.texts(CsvDialect(comment="#", encoding="cp1252")),
    st.sampled_from(["latin-1", "cp1252", "koi8-r", "iso8859-3", "ascii"]),
    st.sampled_from([None, "#"]),
)
def test_records_of_decoded_text_are_where_a_scan_finds_them(
    text: bytes, encoding: str, comment: str | None
) -> None:
    dialect = CsvDialect(encoding=encoding, comment=comment)
    scan = scan_records(text, dialect, final=True)
    decoded = scan_records(decode_bytes(text, encoding), dialect, final=True)
    starts, ends = decoded_offsets(text, encoding, scan.starts, scan.ends)
    assert (starts.tolist(), ends.tolist()) == (decoded.starts.tolist(), decoded.ends.tolist())


def test_records_index_is_int64() -> None:
    (block,) = read_blocks(io.BytesIO(b"1\n2\n"), CsvDialect(), block_bytes=99, start=START)
    assert read_block(block, CsvDialect(), ["a"], ["a"]).records.dtype == np.int64
