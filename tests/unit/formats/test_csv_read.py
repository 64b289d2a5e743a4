import io
from typing import Any

import pytest

from ringhaul.formats.csv_read import FieldReject, TextBlock, read_block
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import START, read_blocks
from tests.cases import each

NAMES = ["a", "b", "c"]


def read(text: bytes, wanted: list[str] | None = None, **options: object) -> TextBlock:
    dialect = CsvDialect(**options)  # type: ignore[arg-type]
    (block,) = read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=START)
    return read_block(block, dialect, NAMES, wanted or NAMES)


def columns(block: TextBlock) -> list[list[bytes | None]]:
    return [column.to_pylist() for column in block.columns]


def test_unquoted_empty_is_null_and_quoted_empty_is_empty() -> None:
    assert columns(read(b'1,,""\n')) == [[b"1"], [None], [b""]]
    assert columns(read(b'"",,\n')) == [[b""], [None], [None]]
    # Without a line end the parser would take the last field for a quoted one.
    assert columns(read(b'1,"",')) == [[b"1"], [b""], [None]]


def test_null_strings_count_unquoted_only_and_replace_the_default() -> None:
    block = read(b'NULL,"NULL",\n', null_strings=("NULL",))
    assert columns(block) == [[None], [b"NULL"], [b""]]
    assert columns(read(b"NULL,,x\n", null_strings=())) == [[b"NULL"], [b""], [b"x"]]


def test_wanted_columns_come_in_the_requested_order() -> None:
    assert columns(read(b"1,2,3\n", ["c", "a"])) == [[b"3"], [b"1"]]


def test_records_with_another_number_of_fields_are_rejects() -> None:
    block = read(b"1,2,3\n\n4,5\n6\n7,8,9,0\n1,1,1\n")
    assert columns(block)[0] == [b"1", b"1"]
    assert block.records.tolist() == [0, 4]
    assert block.rejects == [
        FieldReject(
            1,
            None,
            "has 2 fields, expected 3; --allow-missing-fields takes the others as nulls",
            None,
        ),
        FieldReject(
            2,
            None,
            "has 1 field, expected 3; --allow-missing-fields takes the others as nulls",
            None,
        ),
        FieldReject(
            3, None, "has 4 fields, expected 3; --allow-extra-fields leaves out the rest", None
        ),
    ]


@each("options", [{}, {"quote": None, "escape": "\\"}, {"null_quoted": True}])
@each(
    ("text", "unnamed"),
    [
        (b"1,2,3,4\n5,6,7,8\n", True),
        (b"1,2,3,4\n", False),  # one says nothing about the others
        (b"1,2,3,4\n5,6,7,\n", True),
        (b"1,2,3,4\n5,6,7\n", False),
        (b"1,2,3,4\n5,6,7,8,9\n", False),
        (b"1,2,3,4,5\n", False),
        (b"1,2,3,\n4,5,6,\n", False),  # a delimiter at the end of each line
    ],
)
def test_when_all_records_have_a_field_more_the_first_may_have_no_name(
    text: bytes, unnamed: bool, options: dict[str, Any]
) -> None:
    reason = read(text, **options).rejects[0].reason
    if unnamed:
        assert reason == (
            "has 4 fields, expected 3; so have all records around it. If the first field has no "
            "name, as in files of R's write.table, name all fields by --columns; "
            "--allow-extra-fields leaves out the last field instead"
        )
    else:
        assert reason.endswith("expected 3; --allow-extra-fields leaves out the rest")


def test_allowed_extra_fields_are_dropped_and_missing_ones_are_null_in_order() -> None:
    text = b'1,2,3\n4,"5"\n6\n7,8,9,0,"\n"\n1,1,1\n'
    block = read(text, allow_extra_fields=True, allow_missing_fields=True)
    assert columns(block) == [
        [b"1", b"4", b"6", b"7", b"1"],
        [b"2", b"5", None, b"8", b"1"],
        [b"3", None, None, b"9", b"1"],
    ]
    assert block.records.tolist() == [0, 1, 2, 3, 4]
    assert block.rejects == []
    assert [r.record for r in read(text, allow_extra_fields=True).rejects] == [1, 2]


def test_a_short_record_of_invalid_utf_8_is_the_only_reject() -> None:
    block = read(b"1,2,3\n\xff,2\n4,\xff,6\n")
    assert columns(block) == [[b"1", b"4"], [b"2", b"\xff"], [b"3", b"6"]]
    assert [(r.record, r.reason) for r in block.rejects] == [
        (1, "has 2 fields, expected 3; --allow-missing-fields takes the others as nulls")
    ]


def test_nul_bytes_are_rejects_in_wanted_columns_unless_allowed() -> None:
    text = b"1,2,3\n4,\0,6\n7,8,\0\n"
    block = read(text, ["a", "b"])
    assert columns(block) == [[b"1", b"7"], [b"2", b"8"]]
    ((record, column, reason, value, stage),) = block.rejects
    assert (record, column, value, stage) == (1, "b", b"\0", "parse")
    assert "NUL" in reason and "--encoding utf-16" in reason and "--allow-nul" in reason
    assert columns(read(text, allow_nul=True))[1] == [b"2", b"\0", b"8"]


def test_comments_are_removed_whatever_they_contain() -> None:
    text = b'#one,"\n1,2,3\n#"\n\n#,,,,\n4,"5\n#5",6\n#end'
    assert columns(read(text, comment="#"))[1] == [b"2", b"5\n#5"]


def test_a_byte_order_mark_in_the_middle_of_a_file_is_data() -> None:
    dialect = CsvDialect()
    text = b"1,2,3\n" + "\ufeff4,5,6\n".encode()
    blocks = list(read_blocks(io.BytesIO(text), dialect, block_bytes=6, start=START))
    assert len(blocks) == 2
    last = read_block(blocks[1], dialect, NAMES, ["a"])
    assert columns(last) == [["\ufeff4".encode()]]


def test_single_byte_encodings_are_decoded() -> None:
    block = read("é,€,\u201cx\u201d\n".encode("cp1252"), encoding="cp1252")
    assert columns(block) == [["é".encode()], ["€".encode()], ["\u201cx\u201d".encode()]]


def test_a_byte_without_a_character_stays_invalid() -> None:
    assert columns(read(b"a,\x81,c\n", encoding="cp1252"))[1] == [b"\xff"]


def test_a_defective_record_is_not_parsed() -> None:
    dialect = CsvDialect()
    (block,) = read_blocks(io.BytesIO(b'1,"2'), dialect, block_bytes=99, start=START)
    with pytest.raises(ValueError, match="defective"):
        read_block(block, dialect, NAMES, NAMES)
