"""JSON objects in any layout are cut into the same records, however the stream is chunked."""

from __future__ import annotations

import io
import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.errors import SourceCorrupt
from ringhaul.formats import json_documents
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.json_documents import scan_documents, without_comments
from ringhaul.formats.pieces import START
from ringhaul.formats.split import read_blocks, split_units
from tests.cases import each
from tests.property.formats.positions import record_position

PLAIN = CsvDialect(quote=None, json_layout="documents")
COMMENTED = CsvDialect(quote=None, json_layout="commented")

_SCALARS = st.one_of(
    st.integers(), st.booleans(), st.none(), st.text('ab"\\{}[]/*#,\n é', max_size=6)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
OBJECTS = st.lists(st.dictionaries(st.text('ab"{', max_size=3), _VALUES, max_size=3), max_size=6)
COMMENTS = st.sampled_from(["// a { b\n", "/* } */", "# ,[\n", "/***/", "/* a * / */"])


def records(data: bytes, dialect: CsvDialect, block_bytes: int) -> list[bytes]:
    """Return the records of a unit that is read by itself."""
    blocks = read_blocks(io.BytesIO(data), dialect, block_bytes=block_bytes, start=START)
    return [
        bytes(block.data[start:end])
        for block in blocks
        for start, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True)
    ]


def read(data: bytes, dialect: CsvDialect, block_bytes: int) -> list[bytes]:
    found = []
    for block in read_blocks(io.BytesIO(data), dialect, block_bytes=block_bytes, start=START):
        assert block.defect is None
        pairs = zip(block.starts.tolist(), block.ends.tolist(), strict=True)
        for record, (start, end) in enumerate(pairs):
            found.append(bytes(block.data[start:end]))
            at = record_position(block, record)
            assert data[at.offset_bytes :].startswith(found[-1])
            assert at.line == 1 + data[: at.offset_bytes].count(b"\n")
    return found


@given(
    objects=OBJECTS,
    layout=st.sampled_from(["lines", "array", "pretty", "sequence", "commas", "one line"]),
    block_bytes=st.integers(1, 80),
)
def test_each_layout_holds_the_same_objects(
    objects: list[Any], layout: str, block_bytes: int
) -> None:
    texts = [json.dumps(value, indent=2 if layout == "pretty" else None) for value in objects]
    data = {
        "lines": "\n".join(texts),
        "array": "[" + ",\n".join(texts) + "]\n",
        "pretty": "[\n" + " ,\n ".join(texts) + "\n]",
        "sequence": "".join(f"\x1e{text}\n" for text in texts),
        "commas": ",".join(texts),
        "one line": "".join(texts),
    }[layout].encode()
    assert [json.loads(text) for text in read(data, PLAIN, block_bytes)] == objects
    assert [json.loads(text) for text in read(data, PLAIN, 1000)] == objects
    units = list(split_units(io.BytesIO(data), PLAIN, unit_bytes=block_bytes, start=START))
    assert sum(unit.records_count for unit in units) == len(objects)
    texts = [
        text
        for unit in units
        for text in records(data[unit.offset_bytes :][: unit.length_bytes], PLAIN, 50)
    ]
    assert [json.loads(text) for text in texts] == objects
    at = 0
    for unit in units:  # without gap or overlap, each a run of records
        assert unit.offset_bytes == at
        at += unit.length_bytes
    assert at == (len(data) if units else 0) or not objects


@given(
    objects=OBJECTS, comments=st.lists(COMMENTS, min_size=1, max_size=4), size=st.integers(1, 60)
)
def test_comments_are_passed_over(objects: list[Any], comments: list[str], size: int) -> None:
    data = comments[0]
    for at, value in enumerate(objects):
        text = json.dumps(value)
        data += "{" + comments[at % len(comments)] + text[1:] + comments[-1]
    found = [json.loads(without_comments(text)) for text in read(data.encode(), COMMENTED, size)]
    assert found == objects


@given(
    data=st.text('{}[]",\\/*#a \n\x1e', max_size=40), comments=st.booleans(), final=st.booleans()
)
def test_the_compiled_walk_is_the_plain_one(data: str, comments: bool, final: bool) -> None:
    raw = data.encode()
    plain = scan_documents(raw, len(raw), comments=comments, final=final)
    with mock.patch.object(json_documents, "COMPILED_BYTES_MIN", 0):
        compiled = scan_documents(raw, len(raw), comments=comments, final=final)
    assert plain.starts.tolist() == compiled.starts.tolist()
    assert plain.ends.tolist() == compiled.ends.tolist()
    assert plain.consumed_bytes == compiled.consumed_bytes
    assert plain.nesting == compiled.nesting


def test_an_object_that_is_not_closed_ends_what_is_read() -> None:
    data = b'[{"id": 1},\n{"id": 2, "inner": {"id": 3},\n{"id": 4}'
    first, second = read_blocks(io.BytesIO(data), PLAIN, block_bytes=20, start=START)
    assert first.records_count == 1 and first.defect is None
    assert second.defect is not None and second.defect.startswith("line 2: the JSON object")
    assert second.size_bytes == len(data) - data.index(b"\n") - 1


def test_an_object_that_is_too_long_costs_itself_alone() -> None:
    dialect = CsvDialect(quote=None, json_layout="documents", record_bytes_max=100)
    long = b'{"a": "' + b"x" * 200 + b'"}'
    data = b'{"a": 1}' + long + b'\n{"a": 2}'
    blocks = list(read_blocks(io.BytesIO(data), dialect, block_bytes=10_000, start=START))
    texts = [
        (b.defect is None, bytes(b.data[b.starts[r] : b.ends[r]]))
        for b in blocks
        for r in range(b.records_count)
    ]
    assert [text for good, text in texts if good] == [b'{"a": 1}', b'{"a": 2}']
    assert [good for good, _ in texts].count(False) == 1


def test_a_huge_array_is_read_in_small_pieces() -> None:
    element = b'{"id": 1, "text": "' + b"x" * 80 + b'"},\n '
    data = b"[" + element * 20_000 + b"{}]"
    sizes = [
        (block.size_bytes, block.records_count)
        for block in read_blocks(io.BytesIO(data), PLAIN, block_bytes=2**16, start=START)
    ]
    assert sum(count for _, count in sizes) == 20_001
    assert max(size for size, _ in sizes) <= 2**17 + len(element)


def test_text_that_is_no_object_is_a_record_of_its_own() -> None:
    assert read(b'[1, {"a": 2}x, "b"]', PLAIN, 100) == [b"1", b'{"a": 2}', b"x", b'"b"']


def test_comments_of_hostile_text_take_linear_time() -> None:
    for text in (b'x"' + b'\\"' * 500_000, b"x" + b"/*" * 500_000, b"#" * 1_000_000):
        assert len(without_comments(text)) == len(text)


def split(data: bytes, size: int = 1000) -> int:
    """The records of all units of a complete file."""
    units = split_units(io.BytesIO(data), PLAIN, unit_bytes=size, start=START, complete="x.json")
    return sum(unit.records_count for unit in units)


CUT = [b"", b",", b",\n", b" ,[[[[", b"[", b'], [{"id": 3}']
DAMAGED = [b"] ]]", b"]]", b'] ] [{"id": 3}]']


@each("end", [*CUT, *DAMAGED])
@each("count", [1, 2, 2000])
@each("begin", [b"[", b"\xef\xbb\xbf \n["])
def test_what_is_cut_off_between_two_objects_is_damage(
    end: bytes, count: int, begin: bytes
) -> None:
    data = begin + b",\n".join(b'{"id": %d, "]": ["["]}' % n for n in range(count)) + end
    why = "not closed at the end of the file" if end in CUT else "where no JSON array is open"
    for size in (1, 100, 1 << 20):
        with pytest.raises(SourceCorrupt, match=rf"^x\.json: .*{why}"):
            split(data, size)
        with pytest.raises(SourceCorrupt, match=why):
            list(
                read_blocks(
                    io.BytesIO(data), PLAIN, block_bytes=size, start=START, complete="x.json"
                )
            )


@given(objects=OBJECTS, size=st.integers(1, 80), chunk=st.integers(1, 200))
def test_complete_files_are_not_damaged(objects: list[Any], size: int, chunk: int) -> None:
    texts = [json.dumps(value) for value in objects]
    comment = "/* ] [ */"
    for data in (
        "[" + ",".join(texts) + "]",
        "[" + ",".join(texts) + ",]",
        "[[" + "],[".join(texts) + "]]",
        "[" + "]\n[".join(texts) + "]\n",
        "\n".join(texts),
        ",".join(texts) + ",",
        "",
    ):
        raw = data.encode()
        assert split(raw, size) == len(objects) or not data
        blocks = read_blocks(
            io.BytesIO(raw), PLAIN, block_bytes=chunk, start=START, complete="x.json"
        )
        assert sum(block.records_count for block in blocks) == len(objects) or not data
        commented = read_blocks(
            io.BytesIO((comment + data + comment).encode()),
            COMMENTED,
            block_bytes=chunk,
            start=START,
            complete="x.json",
        )
        assert sum(block.records_count for block in commented) == len(objects) or not data


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_comment_that_is_not_closed_hides_nothing(size: int) -> None:
    def read_whole(data: bytes) -> int:
        blocks = read_blocks(
            io.BytesIO(data), COMMENTED, block_bytes=size, start=START, complete="x.json"
        )
        return sum(block.records_count for block in blocks)

    for data in (b'{"id": 1} /* {"id": 2}', b'[{"id": 1}, /*', b'/* {"id": 1}' * 2000):
        with pytest.raises(SourceCorrupt, match=r"a comment that begins with /\* is not closed"):
            read_whole(data)
    for data in (b'{"id": 1} // /*', b'{"id": 1} /* */', b'{"a": "/*"}', b'/**/ {"id": 1} # /*'):
        assert read_whole(data) == 1


def test_an_object_that_is_not_closed_stays_a_reject() -> None:
    assert split(b'[{"id": 1},\n{"id": 2, "inner": [') == 2


def test_brackets_around_a_record_that_is_too_long_are_counted_once() -> None:
    dialect = CsvDialect(quote=None, json_layout="documents", record_bytes_max=100)
    long = b'{"a": "' + b"x" * 200 + b'"}'
    for data, good in ((b'[{"a": 1},' + long + b',{"a": 2}]', True), (b"[" + long + b",", False)):
        units = split_units(
            io.BytesIO(data), dialect, unit_bytes=10, start=START, complete="x.json"
        )
        if good:
            assert sum(unit.records_count for unit in units) == 3
        else:
            with pytest.raises(SourceCorrupt):
                list(units)


def test_a_part_of_a_file_may_begin_and_end_anywhere() -> None:
    assert len(records(b'{"id": 1}, {"id": 2}]', PLAIN, 10)) == 2
    assert len(records(b'[{"id": 1}, ', PLAIN, 10)) == 1
