"""Spellings by option: each is read with its option, and without it a reject names the option."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ringhaul.cql.nested import encode_column
from ringhaul.cql.text import TextFormat
from ringhaul.cql.types import parse_type
from tests.cases import each

FIELDS = {"pair": (("f1", "int"), ("Big", "text"))}
DAY = 86_400_000


def column(cql_type: str, text: str, **options: Any) -> tuple[bytes | None, str | None]:
    """Return the cell of a text, or why it is refused."""
    found = encode_column(
        parse_type(cql_type, FIELDS),
        pa.array([text.encode()], pa.binary()),
        TextFormat(**options),
        null_length=-1,
    )
    if found.faults:
        return None, found.faults[0].words("c")
    return found.cells.values[0].as_py(), None


def same(cql_type: str, text: str, usual: str, **options: Any) -> None:
    """Assert that a text means with these options what another one means without."""
    assert column(cql_type, text, **options) == (column(cql_type, usual)[0], None)
    assert column(cql_type, usual)[1] is None


#: type, text, the options that read it, what it means, what the reject without them names.
READ = [
    ("date", "20240131", {"date_formats": ("%Y%m%d",)}, "2024-01-31", "--date-format yyyyMMdd"),
    ("date", "20240131", {"date_formats": ("yyyyMMdd",)}, "2024-01-31", "--date-format"),
    ("date", "31/01/2024", {"date_formats": ("%F", "dd/MM/yyyy")}, "2024-01-31", "--date-format"),
    ("date", "1/2/24", {"date_formats": ("d/M/yy",)}, "2024-02-01", "--date-format"),
    ("date", "1/2/70", {"date_formats": ("%d/%m/%y",)}, "1970-02-01", "--date-format"),
    (
        "date",
        "vendredi, 9 mars 2018",
        {"date_formats": ("cccc, d MMMM uuuu",), "locale": "fr_FR"},
        "2018-03-09",
        "--date-format",
    ),
    ("date", "9. MÄRZ 2018", {"date_formats": ("%d. %B %Y",), "locale": "de"}, "2018-03-09", "--"),
    ("date", "3. févr. 2018", {"date_formats": ("d. MMM yyyy",), "locale": "fr"}, "2018-02-03", ""),
    ("date", "12", {"date_formats": ("d",)}, "1970-01-13", "--date-format d"),
    ("date", "12", {"date_formats": ("d",), "epoch": "2000-01-01"}, "2000-01-13", "--date-format"),
    ("date", "86400", {"date_formats": ("s",)}, "1970-01-02", "--date-format"),
    # Dates count by the clock of the epoch, moments from its instant
    (
        "date",
        "11520",
        {"date_formats": ("min",), "epoch": "2000-01-01T00:00:00+01:00"},
        "2000-01-09",
        "",
    ),
    ("date", "-1", {"date_formats": ("d",), "epoch": "2000-01-01T00:00-05:30"}, "1999-12-31", ""),
    (
        "timestamp",
        "11520",
        {"epoch_unit": "min", "epoch": "2000-01-01T00:00:00+01:00"},
        "2000-01-08T23:00Z",
        "",
    ),
    ("timestamp", "1", {"epoch_unit": "s", "epoch": "2000-01-01 00:00-05:30"},
     "2000-01-01T05:30:01Z", ""),
    ("date", "2024-1-3", {"accept": ("dates",)}, "2024-01-03", "--accept dates"),
    ("date", "2024-01-31T00:00:00.000Z", {"accept": ("dates",)}, "2024-01-31", "--accept dates"),
    ("time", "122446.999", {"time_formats": ("HHmmss.SSS",)}, "12:24:46.999", "--time-format"),
    ("time", "122446999", {"time_formats": ("HHmmssSSS",)}, "12:24:46.999", "--time-format"),
    ("time", "1:02 PM", {"time_formats": ("%I:%M %p",)}, "13:02", "--time-format"),
    ("time", "123", {"time_formats": ("ms",)}, "00:00:00.123", "--time-format"),
    ("time", "90", {"time_formats": ("min",)}, "01:30", "--time-format"),
    ("time", "5:03:00", {"accept": ("dates",)}, "05:03:00", "--accept dates"),
    (
        "timestamp",
        "2018-03-09T17:12:32.000+01:00[Europe/Paris]",
        {"accept": ("zones",)},
        "2018-03-09T16:12:32Z",
        "--accept zones",
    ),
    (
        "timestamp",
        "2017-11-30 14:46 CET",
        {"accept": ("zones",)},
        "2017-11-30T13:46Z",
        "--accept zones",
    ),
    (
        "timestamp",
        "2018-07-09T17:12:32[Europe/Paris]",
        {"timestamp_formats": ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]'['VV']'",)},
        "2018-07-09T15:12:32Z",
        "",
    ),
    (
        "timestamp",
        "9 mars 2018 10:00",
        {"timestamp_formats": ("d MMMM yyyy HH:mm",), "locale": "fr", "timezone": "Europe/Paris"},
        "2018-03-09T09:00Z",
        "",
    ),
    ("timestamp", "123456", {"epoch_unit": "min", "epoch": "2000-01-01"}, "2000-03-26T17:36Z", ""),
    ("timestamp", "1700000000.123", {"epoch_unit": "s"}, "2023-11-14T22:13:20.123Z", ""),
    ("timestamp", "1700000000", {"timestamp_formats": ("s",)}, "2023-11-14T22:13:20Z", ""),
    ("int", "7.0", {"accept": ("fractions",)}, "7", "--accept fractions"),
    ("bigint", "1e3", {"accept": ("fractions",)}, "1000", "--accept fractions"),
    ("varint", "1.5E+2", {"accept": ("fractions",)}, "150", "--accept fractions"),
    ("tinyint", "-120e-1", {"accept": ("fractions",)}, "-12", "--accept fractions"),
    ("int", "1.000,0", {"accept": ("fractions",), "decimal_sep": ",", "thousands_sep": "."},
     "1000", ""),
    ("int", "2.5", {"rounding": "half-even"}, "2", "--rounding"),
    ("int", "3.5", {"rounding": "half-even"}, "4", "--rounding"),
    ("int", "2.5", {"rounding": "half-up"}, "3", "--rounding"),
    ("int", "-2.5", {"rounding": "half-down"}, "-2", "--rounding"),
    ("int", "-2.1", {"rounding": "floor"}, "-3", "--rounding"),
    ("int", "-2.1", {"rounding": "ceiling"}, "-2", "--rounding"),
    ("int", "2.9", {"rounding": "down"}, "2", "--rounding"),
    ("int", "199.01", {"rounding": "up"}, "200", "--rounding"),
    ("varint", "99.5", {"rounding": "half-up"}, "100", "--rounding"),
    ("tinyint", "128", {"overflow": "clamp"}, "127", "outside -128..127"),
    ("smallint", "-40000", {"overflow": "clamp"}, "-32768", "outside"),
    (
        "duration",
        "P1Y2M3DT4H5M6.789S",
        {"accept": ("fractions",)},
        "1y2mo3d4h5m6s789ms",
        "--accept fractions",
    ),
    ("duration", "-PT1.5S", {"accept": ("fractions",)}, "-1s500ms", "--accept fractions"),
    ("boolean", "1.0", {"accept": ("fractions",)}, "1", "--accept fractions"),
    ("tinyint", "true", {"accept": ("booleans",)}, "1", "--accept booleans reads it as 1"),
    ("int", " FALSE ", {"accept": ("booleans",)}, "0", "--accept booleans reads it as 0"),
    ("bigint", "tRuE", {"accept": ("booleans",)}, "1", "--accept booleans"),
    ("varint", "no", {"accept": ("booleans",)}, "0", "--accept booleans"),
    ("decimal", "yes", {"accept": ("booleans",)}, "1", "--accept booleans"),
    ("double", "f", {"accept": ("booleans",)}, "0", "--accept booleans"),
    (
        "float",
        "OUI",
        {"accept": ("booleans",), "true_words": ("oui",), "decimal_sep": ","},
        "1",
        "is not a number",
    ),
    ("smallint", "1.234", {"accept": ("booleans",), "thousands_sep": ".", "decimal_sep": ","},
     "1234", ""),
    # A word that is a number stays what it is.
    ("int", "2", {"accept": ("booleans",), "true_words": ("2",), "false_words": ("3",)}, "2", ""),
    ("bigint", "2000-01-01T00:00Z", {"accept": ("moments",)}, "946684800000", "--accept moments"),
    ("int", "1970-01-01", {"accept": ("moments",)}, "0", "--accept moments"),
    ("smallint", "2000-01-31", {"accept": ("moments",), "epoch_unit": "d", "epoch": "2000-01-01"},
     "30", "not a whole number"),
    ("varint", "31/01/2000", {"accept": ("moments",), "timestamp_formats": ("dd/MM/yyyy", "d")},
     "10987", ""),
    ("decimal", "1970-01-01 00:00:01", {"accept": ("moments",)}, "1000", "--accept moments"),
    ("double", "1.5", {"accept": ("moments",)}, "1.5", ""),
    ("list<int>", '["1970-01-01", 7]', {"accept": ("moments",)}, "[0, 7]", "--accept moments"),
    ("list<int>", "[true, 7, false]", {"accept": ("booleans",)}, "[1, 7, 0]", "--accept booleans"),
    ("boolean", "0.0", {"accept": ("fractions",)}, "0", "--accept fractions"),
    ("double", "0x1.8p3", {"accept": ("hex-floats",)}, "12", "--accept hex-floats"),
    (
        "double",
        "0x1.fffffffffffffP+1023",
        {"accept": ("hex-floats",), "thousands_sep": ","},
        "1.7976931348623157e308",
        "--accept hex-floats",
    ),
    ("decimal", "0x1.8p3", {"accept": ("hex-floats",)}, "12.0", "--accept hex-floats"),
    ("decimal", "-0x.8", {"accept": ("hex-floats",)}, "-0.5", "--accept hex-floats"),
    ("decimal", "0x1.999999999999ap-4", {"accept": ("hex-floats",)}, "0.1", "--accept hex-floats"),
    ("decimal", "0x00.00p7", {"accept": ("hex-floats",)}, "0.0", "--accept hex-floats"),
    ("decimal", "0x0.0000000000001p-1022", {"accept": ("hex-floats",)}, "5e-324", "--accept"),
    (
        "decimal",
        "0x1.fffffffffffffP+1023",
        {"accept": ("hex-floats",), "thousands_sep": ","},
        "1.7976931348623157e308",
        "--accept hex-floats",
    ),
    ("float", "-0x.8", {"accept": ("hex-floats",)}, "-0.5", "--accept hex-floats"),
    (
        "uuid",
        "123e4567e89b12d3a456426614174000",
        {"accept": ("uuids",)},
        "123e4567-e89b-12d3-a456-426614174000",
        "--accept uuids",
    ),
    (
        "timeuuid",
        "{123E4567-e89b-12d3-a456-426614174000}",
        {"accept": ("uuids",)},
        "123e4567-e89b-12d3-a456-426614174000",
        "--accept uuids",
    ),
    (
        "uuid",
        "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
        {"accept": ("uuids",)},
        "123e4567-e89b-12d3-a456-426614174000",
        "--accept uuids",
    ),
    ("blob", "yv66vg==", {"blob": "any"}, "0xcafebabe", "0x"),
    ("blob", "0xCAFE", {"blob": "any"}, "0xcafe", ""),
    ("list<int>", "1,2,3", {"accept": ("collections",)}, "[1,2,3]", "--accept collections"),
    ("list<int>", "5", {"accept": ("collections",)}, "[5]", ""),
    ("list<int>", "{1,2,3}", {"accept": ("collections",)}, "[1,2,3]", "--accept collections"),
    (
        "set<text>",
        "['foo','it''s']",
        {"accept": ("collections",)},
        '["foo","it\'s"]',
        "--accept collections",
    ),
    ("list<text>", "a b, \"c,d\"", {"accept": ("collections",)}, '["a b","c,d"]', "--accept"),
    (
        "map<int, frozen<list<text>>>",
        '1 : ["foo", "bar"], 2:["qix"]',
        {"accept": ("collections",)},
        '{"1":["foo","bar"],"2":["qix"]}',
        "--accept collections",
    ),
    (
        "map<text, int>",
        "{a b: 1, c=2}",
        {"accept": ("collections",)},
        '{"a b":1,"c":2}',
        "--accept collections",
    ),
    (
        "tuple<text, text>",
        "['2016-07-24T20:34:12.999','+01:00']",
        {"accept": ("collections",)},
        '["2016-07-24T20:34:12.999","+01:00"]',
        "--accept collections",
    ),
    (
        "frozen<pair>",
        "{'f1':42,'Big':'x'}",
        {"accept": ("collections",)},
        '{"f1":42,"Big":"x"}',
        "--accept collections",
    ),
    ("frozen<pair>", '[42,"x"]', {"accept": ("collections",)}, '{"f1":42,"Big":"x"}', "object"),
    ("frozen<pair>", "(42,'x')", {"accept": ("collections",)}, '{"f1":42,"Big":"x"}', "--accept"),
    ("frozen<pair>", "f1: 42", {"accept": ("collections",)}, '{"f1":42}', "--accept collections"),
    ("list<text>", '[{"a": 1.50}]', {"accept": ("json-text",)}, '["{\\"a\\":1.50}"]', "json-text"),
]  # fmt: skip


@each(("cql_type", "text", "options", "usual", "named"), READ)
def test_an_option_reads_its_spelling(
    cql_type: str, text: str, options: dict[str, Any], usual: str, named: str
) -> None:
    same(cql_type, text, usual, **options)
    if named:
        reason = column(cql_type, text)[1]
        assert reason is not None and named in reason


#: What stays refused with the option, and why.
REFUSED = [
    ("date", "20240230", {"date_formats": ("yyyyMMdd",)}, "day 30, which the month lacks"),
    ("date", "1", {"date_formats": ("h",)}, "is not at midnight"),
    ("time", "86400000", {"time_formats": ("ms",)}, "is outside the 86400000 ms of a day"),
    ("time", "-1", {"time_formats": ("ms",)}, "is outside"),
    ("timestamp", "2017-11-30 14:46 XYZ", {"accept": ("zones",)}, "is not the name of a zone"),
    ("int", "7.5", {"accept": ("fractions",)}, "--rounding"),
    ("int", "1e99999999999", {"accept": ("fractions",)}, "has an exponent beyond 10,000 digits"),
    ("varint", "1e20000", {"accept": ("fractions",)}, "has an exponent beyond 10,000 digits"),
    ("int", "12,50", {"accept": ("fractions",)}, "is not a whole number"),
    ("boolean", "2.0", {"accept": ("fractions",)}, "is not one of the words"),
    ("double", "0x", {"accept": ("hex-floats",), "overflow": "clamp"}, None),
    ("decimal", "0x1p1024", {"accept": ("hex-floats",)}, "outside the range of a double"),
    ("decimal", "0x1p-99999999", {"accept": ("hex-floats",)}, "more digits than a double"),
    ("decimal", "0x1.80000000000001p-3", {"accept": ("hex-floats",)}, "more digits than a double"),
    ("decimal", f"0x1{'0' * 99}1", {"accept": ("hex-floats",)}, "more digits than a double"),
    ("decimal", "0x", {"accept": ("hex-floats",)}, None),
    ("list<int>", "[1,2", {"accept": ("collections",)}, "not readable: ] is expected"),
    ("list<int>", "1 2", {"accept": ("collections",)}, "is not a whole number"),
    ("map<int, int>", "1,2", {"accept": ("collections",)}, "not readable: : is expected"),
    ("frozen<pair>", "{f1: 1, f1: 2}", {"accept": ("collections",)}, "occurs twice"),
    ("frozen<pair>", "[1,2,3]", {"accept": ("collections",)}, "a JSON array"),
    ("blob", "0x0", {"blob": "any"}, "is neither 0x and pairs"),
    ("uuid", "123e4567e89b12d3a45642661417400", {"accept": ("uuids",)}, "is not a UUID"),
]


@each(("cql_type", "text", "options", "why"), REFUSED)
def test_an_option_reads_nothing_else(
    cql_type: str, text: str, options: dict[str, Any], why: str | None
) -> None:
    cell, reason = column(cql_type, text, **options)
    if why is None:
        assert (cell, reason) == (b"", None)
    else:
        assert reason is not None and why in reason


def test_a_clamped_float_is_the_largest() -> None:
    same("float", "1e39", "3.4028234663852886e38", overflow="clamp")
    same("double", "-1e400", "-1.7976931348623157e308", overflow="clamp")


def test_many_values_of_one_layout_are_read_alike() -> None:
    """The fast pass reads what the slow parser reads, one by one."""
    texts = [
        f"{day:02}/{month:02}/19{year:02} 10:0{day % 10} Europe/Paris"
        for day in range(1, 32)
        for month in range(1, 13)
        for year in (70, 99)
    ]
    fmt = TextFormat(timestamp_formats=("dd/MM/yyyy HH:mm VV",))
    kind = parse_type("timestamp")
    whole = encode_column(kind, pa.array(texts, pa.binary()), fmt, null_length=-1)
    for row, text in enumerate(texts):
        one = encode_column(kind, pa.array([text], pa.binary()), fmt, null_length=-1)
        assert (row in whole.faults) == (0 in one.faults)
        if 0 not in one.faults:
            assert whole.cells.values[row] == one.cells.values[0]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("yyyy-MM", "must have one year"),
        ("yyyy-MM-dd HH", "must have no time of day"),
        ("yyyy-MM-dd'T", "' without another one"),
        ("yyyy-MM-dd]", "] without ["),
        ("yyyy-MM-dd[", "[ without ]"),
        ("yyyy-MM-dd G", "G is not known"),
    ],
)
def test_an_unusable_pattern_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(Exception, match="--date-format") as refusal:
        TextFormat(date_formats=(pattern,))
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "options",
    [
        {"time_formats": ("s", "ms")},
        {"timestamp_formats": ("s",), "epoch_unit": "ms"},
        {"epoch": "2000-02-30"},
        {"epoch": "soon"},
        {"locale": "tlh"},
        {"accept": ("everything",)},
        {"overflow": "wrap"},
        {"rounding": "random"},
    ],
)
def test_an_unknown_word_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(
        Exception, match=r"--(time|timestamp|epoch|locale|accept|overflow|rounding)"
    ):
        TextFormat(**options)


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "[" * 100_000, "a" * 1_000_000, "{" + " " * 1_000_000, "'" * 999_999]
)
def test_a_hostile_cell_takes_linear_time(text: str) -> None:
    for kind in ("map<text, frozen<list<text>>>", "frozen<pair>", "list<int>"):
        column(kind, text, accept=("collections",))
