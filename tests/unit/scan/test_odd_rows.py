"""Unloaded rows that a load cannot restore are found."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pytest

from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.decode.heavy_rows import HEAVY, ROW_BYTES_MAX
from ringhaul.cql.types import CqlType
from ringhaul.formats.write import OutputFormat, lines
from ringhaul.formats.write.writer import open_writer
from ringhaul.scan.odd_rows import rows_with_odd_elements
from tests.property.cql.pages import page


@pytest.mark.parametrize(
    ("of", "lists", "rows"),
    [
        ("int", pa.array([[1], None, [], [None, 2]], pa.list_(pa.int32())), [3]),
        ("int", pa.array([["1"], ["0x", "2", "0x"], None, [None]]), [1, 3]),
        ("text", pa.array([["0x"], [""], None]), []),
        ("varint", pa.array([["0x"], ["1"], ["00"]]).slice(1), []),
        ("varint", pa.array([["1"], ["1"], ["0x"]]).slice(1), [1]),
    ],
)
def test_lists_with_null_or_empty_elements_are_found(
    of: str, lists: pa.ListArray, rows: list[int]
) -> None:
    assert rows_with_odd_elements(CqlType(of), lists) == rows


def heavy(cells: list[list[bytes | None]], kinds: list[CqlType], *appended: str) -> list[bool]:
    names = [f"c{place}" for place in range(len(kinds))]
    batch = PageDecoder(names, kinds, marks=True, appended=appended).decode(
        page(list(zip(*cells, strict=True)))
    )
    if HEAVY not in batch.schema.names:
        return []
    found: list[bool] = batch.column(HEAVY).to_pylist()
    return found


def test_rows_beyond_one_request_are_marked() -> None:
    kinds = [CqlType("blob"), CqlType("blob")]
    half = ROW_BYTES_MAX // 2
    rows: list[list[bytes | None]] = [[bytes(half - 4), bytes(half - 4)], [None, b"x"]]
    assert heavy([*rows], kinds) == []
    assert heavy([[rows[0][0], bytes(half - 3)], rows[1]], kinds) == [True, False]


def test_elements_of_an_unfrozen_list_take_more_in_a_mutation() -> None:
    count = ROW_BYTES_MAX // 21 + 1
    cell = struct.pack(">i", count) + b"\0\0\0\1\1" * count
    kinds = [CqlType("list", (CqlType("tinyint"),))]
    assert heavy([[cell], [None]], kinds) == []
    assert heavy([[cell], [None]], kinds, "c0") == [True, False]


def test_records_that_are_too_long_to_load_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "RECORD_BYTES_MAX", 100)
    monkeypatch.setattr(lines, "STEP_BYTES", 150)
    texts = ["x" * length for length in (10, 98, 99, 10, 300, 5)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(range(6), pa.int32()), pa.array(texts)], ["i", "t"]
    )
    kinds = [CqlType("int"), CqlType("text")]
    for form, wanted in {"csv": [2, 4], "jsonl": [1, 2, 4], "parquet": []}.items():
        writer = open_writer(OutputFormat(kind=form), io.BytesIO(), ["i", "t"], kinds)
        assert writer.write(batch) == wanted
        writer.close()
