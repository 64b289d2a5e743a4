import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import orc

from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty, check_names, read_header, write_header
from ringhaul.formats.split import Position
from tests.cases import each


def header(text: bytes, **options: object) -> tuple[list[str], Position]:
    return read_header(io.BytesIO(text), CsvDialect(**options))  # type: ignore[arg-type]


@each(
    ("text", "names", "position"),
    [
        (b"id,name\n1,x\n", ["id", "name"], Position(8, 0, 2)),
        (b"id,name\r\n1,x\r\n", ["id", "name"], Position(9, 0, 2)),
        (b"id,name", ["id", "name"], Position(7, 0, 1)),
        (b"\xef\xbb\xbfid, name \r1", ["id", "name"], Position(13, 0, 2)),
        (b'\n\n"a\nb","c ""d"""\n', ["a\nb", 'c "d"'], Position(18, 0, 5)),
        ("größe\n".encode(), ["größe"], Position(8, 0, 2)),
        (b"NULL\n", ["NULL"], Position(5, 0, 2)),
        (b",a,b\n1,x\n", ["", "a", "b"], Position(5, 0, 2)),  # pandas writes an index like this
        (b"a,a\n", ["a", "a"], Position(4, 0, 2)),
        (b"PAR1,BZh,ORC\n1,x\n", ["PAR1", "BZh", "ORC"], Position(13, 0, 2)),
    ],
)
def test_names_and_the_position_after_them(
    text: bytes, names: list[str], position: Position
) -> None:
    assert header(text) == (names, position)
    assert text[position.offset_bytes :] in (b"", b"1,x\n", b"1,x\r\n", b"1")


def test_blanks_of_names_that_are_known_stay() -> None:
    dialect = CsvDialect()
    text = write_header(["id", " lead", "name"], dialect) + b"1,x,y\n"
    known = ["id", " lead", "tail "]
    for data in (text, text.replace(b"name", b" name "), text.replace(b" lead", b'" lead"')):
        assert read_header(io.BytesIO(data), dialect, known=known)[0] == ["id", " lead", "name"]
    assert read_header(io.BytesIO(text), dialect)[0] == ["id", "lead", "name"]


@pytest.mark.parametrize(
    ("names", "unneeded", "message"),
    [
        (["id", "", "name"], (), "header: field 2 of 3 has no name; name it, or name all fields"),
        (["id", "name", "id"], (), "header: 'id' names 2 fields (1, 3); make the names differ"),
        (["id", "name", "id"], ("id",), None),
        (["id", "name"], (), None),
    ],
)
def test_names_that_identify_no_field_are_refused(
    names: list[str], unneeded: Sequence[str], message: str
) -> None:
    if message is None:
        check_names(names, unneeded)
        return
    with pytest.raises(UsageError) as error:
        check_names(names, unneeded)
    assert message in str(error.value)
    assert "--columns" in str(error.value)


def test_an_empty_source_differs_from_one_that_cannot_be_read() -> None:
    with pytest.raises(SourceEmpty):
        header(b"\r\n")


def _zip() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("a.csv", "id\n1\n")
    return written.getvalue()


def _zstd() -> bytes:
    with pa.BufferOutputStream() as stream:
        with pa.CompressedOutputStream(stream, "zstd") as packed:
            packed.write(b"id,name\n" * 100)
        data: bytes = stream.getvalue().to_pybytes()
    return data


def _parquet() -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table({"id": [1]}), written)
    return written.getvalue()


def _orc() -> bytes:
    written = io.BytesIO()
    orc.write_table(pa.table({"id": [1]}), written)
    return written.getvalue()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: gzip.compress(b"id,name\n" * 100), "compressed by gzip: give it a name"),
        (lambda: bz2.compress(b"id,name\n" * 100), "compressed by bzip2: give it a name"),
        (lambda: lzma.compress(b"id,name\n" * 100), "compressed by xz: give it a name"),
        (_zstd, "compressed by zstd: give it a name that ends in .zst, or unpack it"),
        (_zip, "is a ZIP archive, as Excel workbooks are: name its file .zip"),
        (_parquet, "is a Parquet file: give --format parquet"),
        (_orc, "is an ORC file, which is not supported"),
        (
            lambda: b"\x1f\x9d\x90\x6b\x58\xd9\x52\x31",
            "by compress, which is not supported: unpack it, also in a pipe (uncompress -c FILE |",
        ),
        (
            lambda: b"\xff\x06\0\0sNaPpY\0\x0d\0\0",
            "by snappy, which is not supported: unpack it, also in a pipe (snzip -dc FILE |",
        ),
        (lambda: gzip.compress(b'"\n"' + os.urandom(3000)), "compressed by gzip"),
    ],
)
def test_binary_files_are_named_in_the_error(made: Callable[[], bytes], message: str) -> None:
    with pytest.raises(UsageError) as error:
        header(made())
    assert message in str(error.value)


def test_comments_before_the_header_and_other_encodings() -> None:
    assert header(b"# x\nid;n\xe4me\n", comment="#", delimiter=";", encoding="latin-1") == (
        ["id", "näme"],
        Position(12, 0, 3),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty: it has no header and no records"),
        (b"\n\r\n", "is empty: it has no header and no records"),
        (b"id,n\xe4me\n", "header: field 2 is not valid utf-8; --encoding cp1252 reads it as"),
        ("id,name\n".encode("utf-16-le"), "--encoding utf-16"),
        (b'"id,name\n', "has no readable header: line 1: the quote"),
    ],
)
def test_an_unusable_header_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(UsageError) as error:
        header(text)
    assert message in str(error.value)


DIALECTS = st.builds(
    CsvDialect,
    delimiter=st.sampled_from(",;| "),
    quote=st.sampled_from(["'", '"', None]),
    escape=st.sampled_from(["\\", None]),
    comment=st.sampled_from(["#", None]),
    encoding=st.sampled_from(["utf-8", "latin-1"]),
)
NAMES = st.text("ab,;|'\"\\#\r\n\xe9\ufeff", max_size=5)


@given(st.lists(NAMES, min_size=1, max_size=4), DIALECTS)
@example(["a;b", "#c"], CsvDialect(delimiter=";", quote=None))
def test_names_in_a_written_header_are_read_back(names: list[str], dialect: CsvDialect) -> None:
    names = [name.strip() or "x" for name in names]
    if dialect.decoding == "block":
        names = [name.replace("\ufeff", "\xff") for name in names]
    text = write_header(names, dialect)
    found, position = read_header(io.BytesIO(text), dialect)
    assert position.offset_bytes == len(text)
    if dialect.quote is None and dialect.escape is None:
        special = f"{dialect.delimiter}{dialect.comment or ''}\r\n\ufeff"
        names = [re.sub(f"[{re.escape(special)}]", "_", name) for name in names]
    assert found == names


def test_a_field_without_a_name_is_written_and_read_without_one() -> None:
    text = write_header(["", "a"], CsvDialect())
    assert (text, header(text)[0]) == (b'"",a\n', ["", "a"])
