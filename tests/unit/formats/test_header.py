import io

import pytest

from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import read_header
from ringhaul.formats.split import Position


def header(text: bytes, **options: object) -> tuple[list[str], Position]:
    return read_header(io.BytesIO(text), CsvDialect(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "names", "position"),
    [
        (b"id,name\n1,x\n", ["id", "name"], Position(8, 0, 2)),
        (b"id,name\r\n1,x\r\n", ["id", "name"], Position(9, 0, 2)),
        (b"id,name", ["id", "name"], Position(7, 0, 1)),
        (b"\xef\xbb\xbfid, name \r1", ["id", "name"], Position(13, 0, 2)),
        (b'\n\n"a\nb","c ""d"""\n', ["a\nb", 'c "d"'], Position(18, 0, 5)),
        ("größe\n".encode(), ["größe"], Position(8, 0, 2)),
        (b"NULL\n", ["NULL"], Position(5, 0, 2)),
    ],
)
def test_names_and_the_position_after_them(
    text: bytes, names: list[str], position: Position
) -> None:
    assert header(text) == (names, position)
    assert text[position.offset_bytes :] in (b"", b"1,x\n", b"1,x\r\n", b"1")


def test_comments_before_the_header_and_other_encodings() -> None:
    assert header(b"# x\nid;n\xe4me\n", comment="#", delimiter=";", encoding="latin-1") == (
        ["id", "näme"],
        Position(12, 0, 3),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "is empty: it has no header and no records"),
        (b"\n\r\n", "is empty: it has no header and no records"),
        (b"id,,name\n", "header: field 2 of 3 has no name"),
        (b"id,name,id\n", "header: 'id' names 2 fields (1, 3)"),
        (b"id,n\xe4me\n", "header: field 2 is not valid utf-8; give the file's encoding"),
        ("id,name\n".encode("utf-16-le"), "--encoding utf-16"),
        (b'"id,name\n', "has no readable header: line 1: the quote"),
    ],
)
def test_a_header_that_cannot_be_used_is_told(text: bytes, told: str) -> None:
    with pytest.raises(UsageError) as error:
        header(text)
    assert told in str(error.value)
