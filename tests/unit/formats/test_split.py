"""Records, blocks and units: named cases, beside the property tests."""

import io
import resource
from collections.abc import Iterator

import pytest

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.jsonl_read import line_dialect
from ringhaul.formats.split import START, Position, Stream, UnitRange, read_blocks, split_units
from tests.cases import each


def records(text: bytes, **options: object) -> list[bytes]:
    dialect = CsvDialect(**options)  # type: ignore[arg-type]
    return [
        block.data[start:end]
        for block in read_blocks(io.BytesIO(text), dialect, block_bytes=7, start=START)
        for start, end in zip(block.starts, block.ends, strict=True)
    ]


CASES = {
    "no final line end": (b"a,b\nc,d", {}, [b"a,b", b"c,d"]),
    "all line ends": (b"a\nb\r\nc\rd\r", {}, [b"a", b"b", b"c", b"d"]),
    "blank lines": (b"\n\r\n\ra\n\n\r\r\nb\n\n", {}, [b"a", b"b"]),
    "a quoted empty field is a record": (b'""\n\n""', {}, [b'""', b'""']),
    "quoted newlines": (b'1,"x\ny\r\nz"\n2,w\n', {}, [b'1,"x\ny\r\nz"', b"2,w"]),
    "doubled quotes": (b'"a""\n""b"\nc\n', {}, [b'"a""\n""b"', b"c"]),
    "a quote within a field": (b'5" pipe,x\n6" pipe,"y\n"\n', {}, [b'5" pipe,x', b'6" pipe,"y\n"']),
    "text after a closing quote": (b'"a"b"\nc\n', {}, [b'"a"b"', b"c"]),
    "escaped quote": (b'"a\\"\n",b\nc\n', {"escape": "\\"}, [b'"a\\"\n",b', b"c"]),
    "escaped newline": (b"a\\\nb\nc\n", {"escape": "\\"}, [b"a\\\nb", b"c"]),
    "no quotes": (b'"a\nb"\n', {"quote": None}, [b'"a', b'b"']),
    "comments": (b'#"x\na\n#y\nb#"\n', {"comment": "#"}, [b"a", b'b#"']),
    "no comment within quotes": (b'"a\n#b"\n', {"comment": "#"}, [b'"a\n#b"']),
    "a byte order mark": (b"\xef\xbb\xbfa\nb", {}, [b"a", b"b"]),
    "a quote after the byte order mark": (b'\xef\xbb\xbf"a\nb"\n', {}, [b'"a\nb"']),
    "a byte order mark elsewhere": (b"a\n\xef\xbb\xbfb", {}, [b"a", b"\xef\xbb\xbfb"]),
    "nothing": (b"", {}, []),
    "blanks are data": (b" \n", {}, [b" "]),
}


@each("name", CASES)
def test_records(name: str) -> None:
    text, options, expected = CASES[name]
    assert records(text, **options) == expected


def test_units_tile_and_count_records_and_lines() -> None:
    text = b'a\n\n"b\nc"\nd\n\n'
    units = list(split_units(io.BytesIO(text), CsvDialect(), unit_bytes=1, start=START))
    assert units == [
        UnitRange(0, 2, 0, 1, 1, None),
        UnitRange(2, 7, 1, 2, 1, None),
        UnitRange(9, 3, 2, 5, 1, None),
    ]


def test_counting_continues_from_a_start_within_the_source() -> None:
    start = Position(offset_bytes=100, ordinal=7, line=3)
    units = list(split_units(io.BytesIO(b"a\nb\n"), CsvDialect(), unit_bytes=1, start=start))
    assert [unit[:4] for unit in units] == [(100, 2, 7, 3), (102, 2, 8, 4)]


def test_an_unclosed_quote_costs_one_record_and_is_located() -> None:
    text = b'a,b\n1,"x\n2,y\n3,z\n'
    units = list(split_units(io.BytesIO(text), CsvDialect(), unit_bytes=1 << 20, start=START))
    assert [unit[:5] for unit in units] == [(0, 4, 0, 1, 1), (4, 5, 1, 2, 1), (9, 8, 2, 3, 2)]
    assert units[1].defect is not None
    assert units[1].defect.startswith(
        "line 2: the quote that opens at byte 3 of the line is not closed within 134,217,728 "
        "bytes or before the end of the input; close it, or double it"
    )


def test_the_lines_before_the_open_quote_belong_to_the_defect() -> None:
    text = b'"a\nb","c\nd\n'
    (first, second) = read_blocks(io.BytesIO(text), CsvDialect(), block_bytes=4, start=START)
    assert first.data == b'"a\nb","c\n'
    assert first.defect is not None
    assert first.defect.startswith("line 2: the quote that opens at byte 4 of the line")
    assert (second.data, second.position) == (b"d\n", Position(9, 1, 3))


def test_a_line_of_300_mb_is_skipped_in_bounded_memory() -> None:
    class Source:
        """``1,`` and 300 MB of x between two records, generated while it is read."""

        def __init__(self) -> None:
            self.left = [b"0,a\n1,", *[b"x" * 2**20] * 300, b"\n2,b\n"]

        def read(self, size: int, /) -> bytes:
            if not self.left:
                return b""
            chunk = self.left[0][:size]
            self.left[0] = self.left[0][size:]
            if not self.left[0]:
                del self.left[0]
            return chunk

    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    blocks = list(read_blocks(Source(), CsvDialect(), block_bytes=4 * 2**20, start=START))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert [block.data[:4] for block in blocks] == [b"0,a\n", b"1,xx", b"2,b\n"]
    assert blocks[1].size_bytes == 2 + 300 * 2**20 + 1
    assert len(blocks[1].data) == 64 * 2**10
    assert blocks[1].defect is not None
    assert blocks[1].defect.startswith("line 2: the record is longer than 134,217,728 bytes")
    assert blocks[2].position == Position(4 + blocks[1].size_bytes, 2, 3)
    assert grown_kib < 300 * 2**10


def made(*runs: tuple[bytes, int]) -> Stream:
    """Each text repeated as often as its count says, one MiB at a time."""

    def chunks() -> Iterator[bytes]:
        for text, count in runs:
            whole = max(1, 2**20 // len(text))
            yield from (text * min(whole, count - n) for n in range(0, count, whole))

    class Source:
        left, rest = b"", chunks()

        def read(self, size: int, /) -> bytes:
            self.left = self.left or next(self.rest, b"")
            found, self.left = self.left[:size], self.left[size:]
            return found

    return Source()


@pytest.mark.parametrize("filler", [b"x" * 64, b'""', b"\n", b"12345,abc\n"])
def test_an_unclosed_quote_costs_one_record_and_little_memory(filler: bytes) -> None:
    dialect = CsvDialect(record_bytes_max=16 * 2**20)
    count = 20 * 2**20 // len(filler)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stream = made((b'0,a\n1,"', 1), (filler, count), (b"\n2,b\n", 1))
    found, defects, longest = 0, 0, 0
    for block in read_blocks(stream, dialect, block_bytes=2**20, start=START):
        found += block.records_count
        defects += block.defect is not None
        longest = max(longest, len(block.data))
    assert (found, defects) == (3 + (count - 1) * (filler == b"12345,abc\n"), 1)
    assert longest <= 2 * 2**20
    # Three times the longest record, and eight bytes for each line end of a chunk.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 80 * 2**10


@pytest.mark.parametrize("filler", [b"0123456789", b'""', b"two\r\nlines "])
def test_a_record_of_100_mb_is_read_whole(filler: bytes) -> None:
    count = 100 * 2**20 // len(filler) // (8 if filler == b'""' else 1)
    stream = made((b'0,a\n1,"', 1), (filler, count), (b'"\n2,b\n', 1))
    blocks = list(read_blocks(stream, CsvDialect(), block_bytes=2**20, start=START))
    sizes = [int(size) for block in blocks for size in block.ends - block.starts]
    assert sizes == [3, len(filler) * count + 4, 3]
    assert [block.defect for block in blocks] == [None] * len(blocks)


def test_a_record_of_exactly_the_longest_length_is_accepted() -> None:
    dialect = CsvDialect(record_bytes_max=5)
    for line_end in (b"\n", b"\r\n", b"\r", b""):
        for block_bytes in range(1, 12):
            blocks = read_blocks(
                io.BytesIO(b"12345" + line_end), dialect, block_bytes=block_bytes, start=START
            )
            assert [(block.defect, block.ends[0]) for block in blocks] == [(None, 5)]


def test_a_long_line_is_reported_as_a_line_without_quotes() -> None:
    dialect = line_dialect(CsvDialect(record_bytes_max=1000))
    text = b'{"a": "%b"}\n{}\n' % (b"x" * 5000)
    long, _ = read_blocks(io.BytesIO(text), dialect, block_bytes=100, start=START)
    assert long.defect == (
        "line 1: the line is longer than 1,000 bytes, the most that is read; shorten it, or put "
        "each record on its own line"
    )
