import pytest

from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from tests.cases import each


def test_json_round_trip_keeps_every_option() -> None:
    dialect = CsvDialect(
        delimiter="|",
        quote=None,
        escape="\\",
        comment="#",
        encoding="cp1252",
        null_strings=("", "NULL"),
        null_quoted=True,
        trim="text",
        allow_extra_fields=True,
        allow_missing_fields=True,
        allow_nul=True,
        record_bytes_max=99,
    )
    assert CsvDialect.from_json(dialect.to_json()) == dialect
    assert CsvDialect.from_json({}) == CsvDialect()
    # Jobs of earlier versions say how their options are spelled
    assert CsvDialect.from_json({"option_prefix": "values-"}) == CsvDialect()


@each(
    ("options", "message"),
    [
        ({"delimiter": ""}, "delimiter: '' cannot be used"),
        ({"delimiter": "tabs"}, "delimiter: 'tabs' is not a name of one, and letters and digits"),
        ({"delimiter": '|"'}, "delimiter: '|\"' holds the quote"),
        ({"delimiter": "|\\", "escape": "\\"}, "delimiter: '|\\\\' holds the escape"),
        ({"delimiter": "#|", "comment": "#"}, "delimiter: '#|' holds the comment character"),
        ({"delimiter": "|\n"}, "delimiter: '|\\n' holds the end of a line"),
        ({"delimiter": "|" * 17}, "has 17 characters, and at most 16"),
        ({"delimiter": "€", "encoding": "latin-1"}, "cannot be written in iso8859-1"),
        ({"delimiter": ", ", "trim": "text"}, "trim: blanks are dropped, and the delimiter"),
        ({"delimiter": " ", "trim": "text"}, "trim: blanks are dropped, and the delimiter"),
        ({"trim": "both"}, "trim: 'both' is not one of none, text, quoted"),
        ({"delimiter": "\n"}, "delimiter: '\\n' cannot be used"),
        ({"quote": "«"}, "quote: '«' cannot be used"),
        ({"escape": ","}, "escape: ',' is already the delimiter"),
        ({"comment": '"'}, "comment: '\"' is already the quote"),
        ({"encoding": "utf-88"}, "encoding: 'utf-88' is not known"),
        ({"encoding": "base64"}, "encoding: 'base64' is not known"),
        ({"encoding": "idna"}, "encoding: 'idna' is not known"),
        ({"encoding": "punycode"}, "encoding: 'punycode' is not known"),
        ({"encoding": "undefined"}, "encoding: 'undefined' is not known"),
        ({"null_strings": ("x" * 201,)}, "null_strings: 'xxxxxxxxxxxxxxxxxxxx'... is longer"),
        ({"null_strings": tuple("abcdefghij" * 11)}, "null_strings: 110 given"),
        ({"record_bytes_max": 0}, "record_bytes_max: 0"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        CsvDialect(**options)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert error.value.exit_code == 2


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match="delimeter: no such CSV option"):
        CsvDialect.from_json({"delimeter": ","})


def test_a_tab_may_be_typed_and_the_quote_as_its_own_escape_means_doubling() -> None:
    names = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
    names |= {"\\t": "\t", "\\x1F": "\x1f", "^A": "\x01", "^a": "\x01", "^": "^", "\\": "\\"}
    names |= {"||": "||", "::": "::", "|\\t|": "|\t|", "\\x01\\x02": "\x01\x02", "§": "§"}
    for typed, meant in names.items():
        assert CsvDialect(delimiter=typed).delimiter == meant
    dialect = CsvDialect(delimiter="\\t", escape='"')
    assert dialect.delimiter == "\t"
    assert dialect.escape is None


@each(
    ("encoding", "decoding"),
    [
        ("utf-8", "none"),
        ("UTF8", "none"),
        ("utf-8-sig", "none"),
        ("ascii", "block"),
        ("latin-1", "block"),
        ("cp1252", "block"),
        ("koi8-r", "block"),
        ("mac-roman", "block"),
        ("iso-8859-15", "block"),
        ("hz", "stream"),
        ("mac_arabic", "stream"),  # a second quote at 0xA2
        ("mac_farsi", "stream"),
        ("utf-16", "stream"),
        ("utf-16-le", "stream"),
        ("utf-32", "stream"),
        ("utf-7", "stream"),
        ("cp037", "stream"),
        ("gbk", "stream"),
        ("gb18030", "stream"),
        ("big5", "stream"),
        ("shift_jis", "stream"),
        ("euc-jp", "stream"),
        ("iso2022_jp", "stream"),
    ],
)
def test_where_an_encoding_is_decoded(encoding: str, decoding: str) -> None:
    assert CsvDialect(encoding=encoding).decoding == decoding
