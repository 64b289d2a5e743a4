"""Blocks are cut around records that cost a process."""

from __future__ import annotations

import io

from ringhaul.breadcrumb import Loss
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import START, read_blocks
from ringhaul.records.careful_blocks import careful_blocks


def test_a_lone_cr_is_no_line_end_where_only_lf_ends_records() -> None:
    # Given records with CRs in them, of which the third cost a process
    dialect = CsvDialect(line_end="lf")
    data = b"1,a\r\r\n2,b\rx\n3,c\n4,d\n"
    (block,) = read_blocks(io.BytesIO(data), dialect, block_bytes=2**16, start=START)
    loss = Loss("convert", "a.csv", "", 3, 2, 3, 0)
    # When the block is cut around it
    parts = list(careful_blocks([block], [loss, loss]))
    # Then lines are those of the file, in the pieces as well
    assert [part.position.line for part, _ in parts] == [1, 3, 4]
    assert {part.line_end for part, _ in parts} == {"lf"}
    assert [part.records_count for part, _ in parts] == [2, 1, 1]
