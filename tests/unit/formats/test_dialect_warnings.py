"""Files that raise a warning: their values are legal, but probably not what was meant."""

from io import BytesIO

import pytest

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.dialect_warnings import find_warnings
from ringhaul.formats.split import START, read_blocks

PLAIN = CsvDialect()
TABS = CsvDialect(delimiter="\t", quote=None, null_strings=("",))
ESCAPED = CsvDialect(delimiter="\t", quote=None, escape="\\", null_strings=("\\N",))
MYSQL = CsvDialect(
    delimiter="\t",
    quote=None,
    escape="\\",
    escape_style="mysql",
    line_end="lf",
    null_strings=("\\N",),
)
NULL_LIKE_COMMENT = CsvDialect(comment="#", null_strings=("#N/A",))


def warnings(data: bytes, dialect: CsvDialect) -> list[str]:
    block = next(iter(read_blocks(BytesIO(data), dialect, block_bytes=2**16, start=START)))
    return find_warnings(block, dialect)


@pytest.mark.parametrize(
    ("data", "dialect", "words"),
    [
        (b"1\t\\N\t2\n", TABS, r"some fields are \N"),
        (b"\\N,2\n", PLAIN, r"--null '\N' makes it null"),
        (b"1,\\N\r\n", PLAIN, r"some fields are \N"),
        (b"1,\\N", PLAIN, r"some fields are \N"),
        (b"1\ta\\tb\n", ESCAPED, "here it is the letter t"),
        (b"1\t\\\\\\n\n", ESCAPED, "--escape-style says"),
        (b"1\ta\r\n2\tb\r\n", MYSQL, "--line-end any"),
        (b"1,a\n", NULL_LIKE_COMMENT, "is left out as a comment"),
    ],
)
def test_a_file_in_another_dialect_is_warned_of(
    data: bytes, dialect: CsvDialect, words: str
) -> None:
    (warning,) = warnings(data, dialect)
    assert words in warning


@pytest.mark.parametrize(
    ("data", "dialect"),
    [
        (b"1,a\\N,\\Nb\n", PLAIN),
        (b'1,"\\N"\n', PLAIN),
        (b"1\t\\N\n", ESCAPED),
        (b"1\tC:\\\\temp\n", ESCAPED),
        (b"1\ta\\\tb\n", ESCAPED),
        (b"1\ta\\tb\\N\n", MYSQL),
        (b"1\ta\\\r\n2\tb\n", MYSQL),
        (b"1,C:\\temp\n", PLAIN),
        (b"1,a\n", CsvDialect(comment="#")),
    ],
)
def test_a_file_in_the_dialect_is_not_warned_of(data: bytes, dialect: CsvDialect) -> None:
    assert warnings(data, dialect) == []
