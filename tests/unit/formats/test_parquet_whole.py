"""Parquet files that were put one after the other are told from one file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.errors import SourceCorrupt
from ringhaul.formats.parquet_footer import Stored, read_footer
from ringhaul.formats.parquet_whole import check_one_file


def written(first: int, count: int, **options: object) -> bytes:
    buffer = io.BytesIO()
    rows = range(first, first + count)
    table = pa.table({"id": list(rows), "v": [f"x{n}" for n in rows]})
    pq.write_table(table, buffer, row_group_size=400, **options)
    return buffer.getvalue()


def check(data: bytes) -> None:
    stored = Stored.of(pa.BufferReader(data))
    check_one_file(stored.read, len(data), read_footer(stored), "a.parquet")


@pytest.mark.parametrize("options", [{}, {"write_page_index": True}, {"compression": "none"}])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_several_files_in_one_are_refused(options: dict[str, object], count: int) -> None:
    one, other = written(0, count, **options), written(5000, 700, **options)
    check(one)
    check(other)
    for data in (one + other, other + one, one + one, other + other + one):
        begin = len(data) - len(other if data.endswith(other) else one)
        with pytest.raises(SourceCorrupt, match="another Parquet file begins at byte") as raised:
            check(data)
        assert f"byte {begin:,}:" in str(raised.value)
