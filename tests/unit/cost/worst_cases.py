"""Texts that make a reader of values slow, where it can be made slow: a table of worst cases."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
from cassandra import InvalidRequest, ReadFailure, WriteFailure

from config.values import parse_bytes
from ringhaul.cql.decode.scalars import number_text
from ringhaul.cql.failures import with_reasons
from ringhaul.cql.literal import parse_literal
from ringhaul.cql.long_numbers import integer_of
from ringhaul.cql.names import listed_names, read_names
from ringhaul.cql.nested import encode_column, parse_json
from ringhaul.cql.patterns import compile_pattern
from ringhaul.cql.text import TextFormat, encode_text
from ringhaul.cql.types import parse_type
from ringhaul.dataplane.retry import classify, message
from ringhaul.errors import RinghaulError
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.dialect_warnings import find_warnings
from ringhaul.formats.fixed_layout import FixedField
from ringhaul.formats.fixed_read import fixed_dialect, read_fixed
from ringhaul.formats.header import check_names
from ringhaul.formats.jsonl_read import line_dialect, read_objects
from ringhaul.formats.record_end import first_record
from ringhaul.formats.records import scan_records
from ringhaul.formats.split import START, read_blocks
from ringhaul.formats.transcoding import Transcoded
from ringhaul.output.manifest import read_manifest
from ringhaul.query.errors import QueryError
from ringhaul.query.literals import Literal, typed
from ringhaul.query.sql import parse_statement
from ringhaul.query.where import parse_where
from ringhaul.scan.faults import data_fault
from ringhaul.schedule.cron import Cron
from ringhaul.schedule.templates import Facts, fill
from ringhaul.statements.idempotence import effect_of
from ringhaul.statements.parameter_ranges import parse_span
from ringhaul.storage.hidden import MANIFEST
from tests.loads import table_schema
from tests.property.cql.columns import binary

#: Memory that may be kept meanwhile, in bytes for each character of the input.
BYTES_PER_CHARACTER_MAX = 60.0

FORMATS = TextFormat(timestamp_formats=("%d %b %Y %H:%M:%S.%f %z",))


class Case(NamedTuple):
    """One measured case: `run(text_of(length))`."""

    name: str
    run: Callable[[str], object]
    text_of: Callable[[int], str]
    length: int = 100_000
    bytes_per_character: float = BYTES_PER_CHARACTER_MAX

    def read(self, text: str) -> None:
        """Run it; the parser may refuse the text."""
        with suppress(ValueError, RinghaulError, QueryError):
            self.run(text)


def _column(cql_type: str) -> Callable[[str], object]:
    """Parse a column with the value and good ones, so that the slow parser reads it."""
    return lambda text: encode_text(cql_type, binary([text]), FORMATS, null_length=-1)


def _nested(cql_type: str) -> Callable[[str], object]:
    kind = parse_type(cql_type)
    return lambda text: encode_column(kind, binary([text]), FORMATS, null_length=-1)


def _literal(cql_type: str) -> Callable[[str], object]:
    kind = parse_type(cql_type)
    return lambda text: parse_literal(kind, text)


def _scan(dialect: CsvDialect) -> Callable[[str], object]:
    return lambda text: scan_records(text.encode(), dialect, final=True)


def _first(dialect: CsvDialect) -> Callable[[str], object]:
    return lambda text: first_record(text.encode(), dialect, final=True)


def _blocks(text: str) -> object:
    return sum(
        block.records_count
        for block in read_blocks(
            io.BytesIO(text.encode()), CsvDialect(), block_bytes=2000, start=START
        )
    )


def _transcoded(text: str) -> object:
    stream = Transcoded(io.BytesIO(text.encode()), "utf-7", "a.csv")
    return sum(map(len, iter(lambda: stream.read(1000), b"")))


def _read(dialect: CsvDialect) -> Callable[[str], object]:
    """Read a block of records of two fields, as for a load."""

    def read(text: str) -> object:
        (block,) = read_blocks(
            io.BytesIO(text.encode()), dialect, block_bytes=len(text) + 1, start=START
        )
        return read_block(block, dialect, ["a", "b"], ["a", "b"]) if block.defect is None else None

    return read


def _fixed(dialect: CsvDialect, fields_count: int) -> Callable[[str], object]:
    """Read a block of fixed-width records, as for a load."""
    layout = [FixedField(f"f{n}", 2 * n + 1, 2 * n + 2) for n in range(fields_count)]
    names = [field.name for field in layout]

    def read(text: str) -> object:
        (block,) = read_blocks(
            io.BytesIO(text.encode()), dialect, block_bytes=len(text) + 1, start=START
        )
        return read_fixed(block, dialect, layout, names)

    return read


def _warned(dialect: CsvDialect) -> Callable[[str], object]:
    def warn(text: str) -> object:
        (block,) = read_blocks(
            io.BytesIO(text.encode()), dialect, block_bytes=len(text) + 1, start=START
        )
        return find_warnings(block, dialect)

    return warn


def _objects(text: str) -> object:
    dialect = line_dialect(CsvDialect())
    (block,) = read_blocks(
        io.BytesIO(text.encode()), dialect, block_bytes=len(text) + 1, start=START
    )
    return read_objects(block, dialect, ["id"], None if text.startswith(" ") else ())


def _literal_of(kind: str, cql_type: str) -> Callable[[str], object]:
    of = parse_type(cql_type)
    return lambda text: typed(Literal(kind, text), of, "x")


def _like(text: str) -> object:
    where = parse_where(f"t LIKE '{text}'", LIKE_TABLE)
    assert where.predicate is not None
    return where.predicate.evaluate(pa.record_batch({"t": ["ab" * 1000]}))


def _like_value(text: str) -> object:
    where = parse_where("t LIKE '%a%a%a%_b'", LIKE_TABLE)
    assert where.predicate is not None
    return where.predicate.evaluate(pa.record_batch({"t": [text]}))


def _pattern(text: str) -> object:
    compile_pattern.cache_clear()
    return compile_pattern(text)


def _fault(text: str) -> object:
    return data_fault(ReadFailure(text, consistency=6, failures=1), "10.0.0.1")


def _words(text: str) -> object:
    error = WriteFailure(text, consistency=6, write_type=0, failures=1)
    return classify(InvalidRequest(text)), message(error)


def _manifest(text: str) -> object:
    with TemporaryDirectory() as folder:
        Path(folder, MANIFEST).write_text(text)
        return read_manifest(folder)


def _doubled_name(count: int) -> str:
    """A JSON object with `count` names, the last of them twice."""
    pairs = [f'"k{number}":1' for number in range(count)]
    return "{" + ",".join([*pairs, pairs[-1]]) + "}"


def _filled(text: str) -> object:
    return fill([text], Facts(name="a", due_ms=0, zone=ZoneInfo("UTC")))


LIKE_TABLE = table_schema({"id": "int", "t": "text"}, ["id"])
DUMPS = (
    CsvDialect(delimiter="\t", quote=None, escape="\\", escape_style="mysql", line_end="lf",
               null_strings=(r"\N",)),
    CsvDialect(delimiter="\t", quote=None, escape="\\", escape_style="postgresql", line_end="lf",
               null_strings=(r"\N",)),
    CsvDialect(escape="\\", escape_style="c"),
)  # fmt: skip
ESCAPED, LINES = CsvDialect(escape="\\"), CsvDialect(escape="\\", quote=None)
SCALARS = (
    *("varint", "decimal", "double", "float", "int", "bigint", "boolean", "timestamp", "date"),
    *("time", "duration", "uuid", "inet", "blob"),
)
#: (start, repeated part, end): texts that a regular expression may split in several ways.
HOSTILE = (
    ("", "9", "x"),
    ("", "1", ""),
    ("", "1.", ""),
    (".", "9", "e"),
    ("1e", "9", "."),
    ("-", "-", ""),
    ("", "1:", ""),
    ("", ":", "1"),
    ("P", "1", "Q"),
    ("P", "1Y", ""),
    ("", "1y1mo", "."),
    ("2024-01-01T00:00:00.", "1", "x"),
    ("31 jan 2024 00:00:00.", "1", ""),
    ("00:00:00.", "1", "x"),
    ("0x", "f", "g"),
    ("", " ", "x"),
)

SCALAR_CASES = [
    Case(
        f"{kind} {start}{part}...{end}",
        _column(kind),
        lambda n, start=start, part=part, end=end: start + part * (n // len(part)) + end,  # type: ignore[misc]
        8_000,
    )
    for kind in SCALARS
    for start, part, end in HOSTILE
]
CASES = [
    Case(
        "short fixed-width records",
        _fixed(fixed_dialect(CsvDialect()), 500),
        lambda n: "é\n" * (n // 2),
        20_000,
        700,  # of each, a reject
    ),
    Case(
        "fixed-width records of blanks",
        _fixed(fixed_dialect(CsvDialect(null_strings=())), 500),
        lambda n: (" " * 999 + "é\n") * (n // 1000),
        400_000,
    ),
    Case("varint of many digits", integer_of, lambda n: "7" * n, 150_000),
    Case("varint to text", lambda t: number_text(int(t, 16), 0), lambda n: "7" * n, 150_000),
    Case("decimal to text", lambda t: number_text(int(t, 16), 9), lambda n: "7" * n, 150_000),
    Case(
        "JSON with a doubled name",
        lambda t: parse_json(t.encode()),
        lambda n: _doubled_name(n // 10),
        40_000,
        bytes_per_character=100,
    ),
    Case("JSON, deep", lambda t: parse_json(t.encode()), lambda n: "[" * n),
    Case("JSON string", _nested("list<text>"), lambda n: f'["{"a" * n}"]'),
    Case("JSON escapes", _nested("list<text>"), lambda n: '["' + r"\u0001" * (n // 6) + '"]'),
    Case("literal", _literal("list<text>"), lambda n: f"['{'a' * n}']", 400_000, 4),
    Case("literal, quotes", _literal("list<text>"), lambda n: f"['{chr(39) * n}']", 400_000, 4),
    Case("literal, open", _literal("list<text>"), lambda n: "['" + "a''" * (n // 3), 400_000, 4),
    Case("literal, bare", _literal("list<int>"), lambda n: "[" + "1" * n, 400_000, 8),
    Case("literal, blanks", _literal("list<int>"), lambda n: "[" + " " * n + "x", 400_000, 8),
    Case("literal, keys", _literal("map<timestamp, int>"), lambda n: "{" + "a:" * n, 200_000, 8),
    Case("literal, many", _literal("list<int>"), lambda n: "[" + "1," * n + "1]", 10_000),
    Case("type, quoted", parse_type, lambda n: f'"{"a" * n}"', bytes_per_character=8),
    Case("type, quotes", parse_type, lambda n: '"' + '""' * n, bytes_per_character=16),
    Case("type, deep", parse_type, lambda n: "list<" * n + "int" + ">" * n),
    Case("type, wide", parse_type, lambda n: f"tuple<{'int,' * n}int>", 5_000, 1000),
    Case("names", lambda t: listed_names(t, "--key"), lambda n: "," * n),
    Case("names, quotes", lambda t: listed_names(t, "--key"), lambda n: '"a,' * n, 30_000, 200),
    Case("names, one", lambda t: read_names(t, "--key"), lambda n: '"' + '""' * n, 100_000, 16),
    Case(
        "names of fields",
        lambda t: check_names(t.split(","), [f"u{i}" for i in range(len(t) // 4)]),
        lambda n: ",".join(f"u{i // 2}" for i in range(n)),
        5_000,
        1000,
    ),
    Case("condition, comments", parse_statement, lambda n: "SELECT " + "/*" * n, 20_000, 200),
    Case("condition, blanks", parse_statement, lambda n: "SELECT 1" + " " * n + "x y z", 20_000),
    Case(
        "condition, ALLOW FILTERING",
        parse_statement,
        lambda n: "SELECT 1 allow filtering" + " " * n + "x",
        20_000,
    ),
    Case("condition, text", parse_statement, lambda n: f"SELECT '{'a' * n}'", 20_000, 100),
    Case(
        "condition, IN",
        parse_statement,
        lambda n: f"SELECT 1 FROM t WHERE a IN ({'1,' * n}1)",
        500,
        5000,
    ),
    Case("statement, comments", effect_of, lambda n: "SELECT " + "/*" * n),
    Case("statement, dollars", effect_of, lambda n: "SELECT " + "$" * n),
    Case("statement, signs", effect_of, lambda n: "UPDATE t SET a = a " + "+ " * n, 50_000),
    Case("statement, calls", effect_of, lambda n: "UPDATE t SET a = " + "current" * n, 50_000),
    Case("statement, text", effect_of, lambda n: "UPDATE t SET a = '" + "''" * n, 50_000),
    Case("range", parse_span, lambda n: "a:" + "." * n + "/"),
    Case("range, digits", parse_span, lambda n: f"a:{'1' * n}..2/3"),
    Case("template", _filled, lambda n: "{due" * n),
    Case("template, blanks", _filled, lambda n: "{ " + " " * n + "a"),
    Case("cron", Cron.parse, lambda n: "1" * n + " * * * *"),
    Case("cron, list", Cron.parse, lambda n: "1," * n + "1 * * * *"),
    Case("size", parse_bytes, lambda n: "1" * n + " x"),
    Case("CSV, quotes", _scan(CsvDialect()), lambda n: '"' * n),
    Case("CSV, stray quotes", _scan(CsvDialect()), lambda n: 'a"\n' * n, 50_000, 200),
    Case("CSV, open quotes", _scan(CsvDialect(escape="\\")), lambda n: '"\\"\n' * n, 50_000, 200),
    Case("CSV, comments", _scan(CsvDialect(comment="#")), lambda n: '#"\n' * n, 50_000, 200),
    Case("CSV, escaped line ends", _scan(LINES), lambda n: "\\\n" * n, 500_000, 40),
    Case("CSV, quoted line ends", _scan(CsvDialect()), lambda n: 'a"\n"\n"' * n, 100_000, 40),
    Case("CSV record, doubled quotes", _first(CsvDialect()), lambda n: '"' * n, 2_000_000, 2),
    Case("CSV record, escapes", _first(ESCAPED), lambda n: '\\"' * n, 1_000_000, 2),
    Case("CSV record, open quote", _first(ESCAPED), lambda n: '"' + '\\"' * n, 1_000_000, 2),
    Case("CSV record, escaped line ends", _first(LINES), lambda n: "\\\n" * n, 1_000_000, 2),
    Case("CSV record, quoted line ends", _first(ESCAPED), lambda n: '"\n",' * n, 500_000, 2),
    Case("CSV record, stray quotes", _first(CsvDialect()), lambda n: 'a"' * n, 1_000_000, 2),
    Case("CSV, one record in small blocks", _blocks, lambda n: "a" * n, 400_000),
    Case("CSV, an open quote in small blocks", _blocks, lambda n: '"' + "a\n" * n, 200_000),
    *(
        Case(f"block of {dialect.escape_style} {quoted}, {name}", _read(dialect), text_of, length)
        for quoted, dialect in zip(("", "", "in quotes"), DUMPS, strict=True)
        for name, length, text_of in (
            ("escapes", 400_000, lambda n: "\\" * n + "n\tb\n"),
            ("octal numbers", 400_000, lambda n: r"\101" * n + "\tb\n"),
            ("nulls", 20_000, lambda n: "\\N\t\\N\n" * n),
            ("fields", 400_000, lambda n: "\t" * n + "\n"),
            ("quotes", 400_000, lambda n: "'\"" * n + "\tb\n"),
            ("no second field", 5_000, lambda n: "\\\\\n" * n),
        )
    ),
    Case(
        "objects, names",
        _objects,
        lambda n: f"{{{','.join(f'{chr(34)}k{i}{chr(34)}:1' for i in range(n))}}}",
        10_000,
        100,
    ),
    Case("objects, unknown names", _objects, lambda n: '{"x":1}\n' * n, 3_000, 300),
    Case("objects, no JSON", _objects, lambda n: '{"x\n' * n, 3_000, 300),
    Case("objects, deep", _objects, lambda n: '{"id":' * n, 100_000),
    Case("objects, escapes", _objects, lambda n: '{"id":"' + r"\ud800" * n + '"}', 100_000),
    Case("warnings, escapes", _warned(ESCAPED), lambda n: "\\" * n + "\n", 400_000),
    Case("warnings, almost letters", _warned(ESCAPED), lambda n: r"\\n" * n + "\n", 200_000),
    Case("warnings, almost nulls", _warned(CsvDialect(quote=None)), lambda n: r",\N " * n, 200_000),
    Case("warnings, delimiters", _warned(CsvDialect(quote=None)), lambda n: "," * n, 400_000),
    *(
        Case(
            f"{kind} as {cql_type}, {text_of(3)[:9]}", _literal_of(kind, cql_type), text_of, 20_000
        )
        for kind, cql_type in (
            *(("number", of) for of in ("int", "varint", "decimal", "double")),
            *(("string", of) for of in ("timestamp", "date", "time", "uuid", "inet", "text")),
            ("blob", "blob"),
        )
        for text_of in (
            lambda n: "9" * n + "x",
            lambda n: "1." * n,
            lambda n: "0x" + "f" * n + "g",
            lambda n: "2024-01-01 00:00:00." + "0" * n,
            lambda n: "2024-01-01 00:00:00" + ".000" * n,
            lambda n: ":" * n,
            lambda n: "0-" * n,
        )
    ),
    Case("LIKE, any", _like, lambda n: "%" * n, 20_000, 200),
    Case("LIKE, one", _like, lambda n: "_" * n, 1_000, 10_000),
    Case("LIKE, any and one", _like, lambda n: "%_" * n, 100, 100_000),
    Case("LIKE, escapes", _like, lambda n: r"\\" * n, 1_000, 10_000),
    Case("LIKE, a long value", _like_value, lambda n: "a" * n, 400_000),
    Case("pattern, days", _pattern, lambda n: "%Y-%m-%d" + "%a" * n, 300, 5_000),
    Case("pattern, percent signs", _pattern, lambda n: "%Y-%m-%d" + "%%" * n, 3_000, 1_000),
    Case("pattern, shorthands", _pattern, lambda n: "%F" + "%T" * n, 2_000, 1_000),
    Case(
        "pattern, percent signs before T", _pattern, lambda n: "%F" + "%%" * n + "T", 3_000, 1_000
    ),
    Case("pattern, letters", _pattern, lambda n: "%F" + "x1" * n, 3_000, 1_000),
    *(
        Case(f"{name}, {text_of(3)[:20]}", run, text_of, 20_000, 200)
        for name, run in (
            ("read failure", _fault),
            ("reasons", with_reasons),
            ("write failure", _words),
        )
        for text_of in (
            lambda n: "AB from " + "a" * n,
            lambda n: "AB from " + "1" * n,
            lambda n: "AB from " + "1." * n,
            lambda n: "AB from " + ":" * n,
            lambda n: "AB from " + "/," * n,
            lambda n: "AB from " * n,
            lambda n: "A_" * n,
            lambda n: 'message="' * n,
            lambda n: 'message="a' * n + "b",
            lambda n: 'message="' + '" info=' * n,
            lambda n: "Column " * n,
        )
    ),
    Case("manifest, deep", _manifest, lambda n: "[" * n),
    Case("manifest, digits", _manifest, lambda n: '{"version":' + "1" * n, 400_000),
    Case(
        "manifest, parts", _manifest, lambda n: '{"version":1,"columns":[' + "{}," * n, 50_000, 300
    ),
    Case("UTF-7, one run", _transcoded, lambda n: "+" + "AGEA" * (n // 4), 400_000),
]


def _families() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in [*SCALAR_CASES, *CASES]:
        found.setdefault(re.split(r"[ ,]", case.name, maxsplit=1)[0], []).append(case)
    return found


#: First word of a case's name: a type, a reader or a kind of message -> its cases.
FAMILIES = _families()
