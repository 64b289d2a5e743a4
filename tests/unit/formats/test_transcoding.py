import encodings
import pkgutil
from pathlib import Path

import pytest

from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import read_header
from ringhaul.formats.split import Stream
from ringhaul.formats.transcoding import HELD_BYTES_MAX, encoder_of
from ringhaul.sources.files import open_whole
from ringhaul.sources.find import find_sources


def read_all(stream: Stream, size: int = 1000) -> bytes:
    return b"".join(iter(lambda: stream.read(size), b""))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "gbk", "cp500"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_other_encodings_are_read_as_utf_8(tmp_path: Path, encoding: str, size: int) -> None:
    text = "id,name\r\n1,é中\n" if encoding != "cp500" else "id,name\r\n1,é\n"
    if encoding == "gbk":
        text = text.replace("é", "")
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    dialect = CsvDialect(encoding=encoding)
    (source,) = find_sources([str(path)], dialect)
    with open_whole(source, dialect) as stream:
        assert read_all(stream, size) == text.encode()


def test_undecodable_text_becomes_invalid_utf_8_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\x00\x00\xd8b\x00\n\x00c")
    dialect = CsvDialect(encoding="utf-16-le")
    (source,) = find_sources([str(path)], dialect)
    with open_whole(source, dialect) as stream:
        assert read_all(stream, 3) == b"a\xffb\n\xff"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-7", b"+2AA-,x\n"), ("unicode_escape", b"\\udc80,x\n"), ("utf-7", b"+3IA-,x\n")],
)
def test_halves_of_characters_are_undecodable(tmp_path: Path, encoding: str, text: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    dialect = CsvDialect(encoding=encoding)
    (source,) = find_sources([str(path)], dialect)
    with open_whole(source, dialect) as stream:
        assert read_all(stream) == b"\xff,x\n"


def test_every_accepted_encoding_reads_a_table(tmp_path: Path) -> None:
    """Each of Python's encodings is refused with a message, or reads what it writes."""
    text = "id,name\r\n1,x\r\n"
    path = tmp_path / "a.csv"
    taken = 0
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            dialect = CsvDialect(encoding=module.name)
        except UsageError:
            continue
        path.write_bytes(text.encode(dialect.encoding))
        (source,) = find_sources([str(path)], dialect)
        with open_whole(source, dialect) as stream:
            names, start = read_header(stream, dialect)
        assert (names, start.line) == (["id", "name"], 2), module.name
        taken += 1
    assert taken > 90


def test_undecodable_text_stays_undecodable_when_it_is_written_again(tmp_path: Path) -> None:
    """In each of Python's encodings that is decoded as a stream."""
    path = tmp_path / "a.csv"
    tried = []
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            dialect = CsvDialect(encoding=module.name)
        except UsageError:
            continue
        if dialect.decoding != "stream":
            continue
        # Given records, one with such bytes before a digit, a letter, a blank and its end
        encode = encoder_of(dialect.encoding)
        parts = [b"id,name\n", b"1,\xff0\xffa\n", b"2,x\n", b"3,\xff caf\n", b"4,\xff\n"]
        try:
            path.write_bytes(b"".join(map(encode, parts)))
        except UsageError:
            assert bytes(range(256)).decode(module.name), "there is no undecodable byte"
            continue
        # When they are read
        (source,) = find_sources([str(path)], dialect)
        with open_whole(source, dialect) as stream:
            header, first, second, third, fourth = read_all(stream).splitlines()
        # Then they are undecodable again, and the rest is unchanged
        assert (header, second) == (b"id,name", b"2,x"), module.name
        for line in (first, third, fourth):
            assert b"\xff" in line.split(b",")[1], module.name
        tried.append(dialect.encoding)
    assert len(tried) > 20


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_missing_byte_order_mark_is_reported(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id,t\n1,a\n".encode(f"{encoding}-le"))
    dialect = CsvDialect(encoding=encoding)
    (source,) = find_sources([str(path)], dialect)
    with (
        open_whole(source, dialect) as stream,
        pytest.raises(SourceCorrupt, match=rf"a\.csv: .* byte order mark .* {encoding}-le"),
    ):
        read_all(stream)


def test_an_unterminated_utf_7_run_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"+" + b"A" * (HELD_BYTES_MAX + 2**20))
    dialect = CsvDialect(encoding="utf-7")
    (source,) = find_sources([str(path)], dialect)
    with (
        open_whole(source, dialect) as stream,
        pytest.raises(SourceCorrupt, match="is not a complete character"),
    ):
        read_all(stream, 64 * 2**10)
