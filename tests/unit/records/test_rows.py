"""A block becomes rows and rejects: every wanted record is in exactly one of them."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH
from ringhaul.cql.types import CqlType
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import START, Position
from ringhaul.load.statement import insert_statement
from ringhaul.records.job import Argument, LoadJob, LoadSource
from ringhaul.records.rejects import KEPT_BYTES_MAX, Reject
from ringhaul.records.rows import EncodedRows, RowEncoder
from tests.loads import blocks, load_job, load_source, table_schema
from tests.quickest import quickest

TABLE = table_schema({"id": "int", "n": "int", "note": "text", "total": "double"}, ["id"], ["n"])
BASE_US = 1_000_000


def encoded(
    text: bytes, job: LoadJob, *, start: Position = START
) -> tuple[list[EncodedRows], list[Reject], int]:
    """All rows and rejects of a source with this text, and the number of wanted records."""
    encoder = RowEncoder(job, job.sources[0])
    rows, rejects, count = [], [], 0
    for block in blocks(text, job.dialect, start=start):
        block_rows, block_rejects, block_count = encoder.encode(block)
        rows += block_rows
        rejects += block_rejects
        count += block_count
        assert len(block_rejects) + sum(map(len, block_rows)) == block_count
    return rows, rejects, count


def values(rows: EncodedRows) -> list[list[bytes | str | None]]:
    """Bound values by row as a server reads them: bytes, None for null, "unset"."""
    found = []
    for joined in rows.joined().to_pylist():
        row: list[bytes | str | None] = []
        while joined:
            (length,) = struct.unpack_from(">i", joined)
            joined = joined[4:]
            if length < 0:
                row.append({NULL_LENGTH: None, UNSET_LENGTH: "unset"}[length])
            else:
                row.append(joined[:length])
                joined = joined[length:]
        found.append(row)
    return found


def int4(value: int) -> bytes:
    return struct.pack(">i", value)


def int8(value: int) -> bytes:
    return struct.pack(">q", value)


def job(fields: str = "id n note total", **options: object) -> LoadJob:
    return load_job(TABLE, load_source(fields.split()), base_us=BASE_US, **options)


def test_rows_are_bound_in_mapping_order_and_end_with_their_timestamp() -> None:
    rows, rejects, count = encoded(b'1,2,"a ""b""",0.5\n3,4,,\n', job())
    assert (len(rows), rejects, count) == (1, [], 2)
    assert values(rows[0]) == [
        [int4(1), int4(2), b'a "b"', struct.pack(">d", 0.5), int8(BASE_US)],
        [int4(3), int4(4), "unset", "unset", int8(BASE_US + 1)],
    ]


def test_missing_values_can_be_tombstones() -> None:
    rows, _, _ = encoded(b"3,4,,\n", job(nulls="tombstone"))
    assert values(rows[0]) == [[int4(3), int4(4), None, None, int8(BASE_US)]]


def test_a_quoted_empty_text_is_not_missing() -> None:
    rows, _, _ = encoded(b'3,4,"",\n', job())
    assert values(rows[0])[0][2] == b""


def test_the_routing_key_is_the_partition_key_in_the_tables_order() -> None:
    # Given a table with a composite partition key, and a file with the columns in another order
    table = table_schema({"a": "int", "b": "text", "c": "int"}, ["a", "b"], ["c"])
    turned = load_job(table, load_source(["c", "b", "a"]))
    rows, _, _ = encoded(b"9,xy,7\n", turned)
    # Then each component is preceded by its length and followed by a zero
    assert rows[0].keys.to_pylist() == [b"\x00\x04" + int4(7) + b"\x00" + b"\x00\x02xy\x00"]
    # And a key of a single column is the value itself
    single, _, _ = encoded(b"5,1,,\n", job())
    assert single[0].keys.to_pylist() == [int4(5)]


def test_each_fault_rejects_one_record_and_the_first_fault_is_the_reason() -> None:
    text = (
        b"1,1,ok,1.5\n"
        b"x,1,bad key,1\n"  # not a number
        b"3,1,short\n"  # too few fields
        b",1,no key,\n"  # null in the partition key
        b"5,,no key,\n"  # null in the clustering key
        b"6,1,\xff\xfe,oops\n"  # two faults: the leftmost is the reason
        b"7,1,ok,\n"
    )
    rows, rejects, count = encoded(text, job())
    assert count == 7
    assert [row[0] for row in values(rows[0])] == [int4(1), int4(7)]
    # The timestamps are those of the records, not of the rows
    assert [row[-1] for row in values(rows[0])] == [int8(BASE_US), int8(BASE_US + 6)]
    assert rows[0].records.tolist() == [0, 6]
    assert [(r.line, r.stage, r.column) for r in rejects] == [
        (2, "cast", "id"),
        (3, "parse", None),
        (4, "key", "id"),
        (5, "key", "n"),
        (6, "cast", "note"),
    ]
    assert rejects[0].reason == 'cast int: "x" is not a whole number'
    assert rejects[2].reason == "null in the primary key; it needs a value"
    # And each has its original bytes, at its offset
    for reject in rejects:
        assert reject.data == text[reject.offset : reject.offset + reject.length]
        assert reject.data == text.splitlines()[reject.line - 1]
        assert reject.file == "/data/orders.csv"


def test_rejects_count_physical_lines_and_offsets_of_the_file() -> None:
    # Given a unit that starts in the middle of a file, with line ends of all kinds in and out of
    # values, and blank lines
    start = Position(offset_bytes=1000, ordinal=50, line=80)
    text = b'1,1,"two\r\nlines",\n\n\nx,1,,\r\n2,2,"a\rb\nc",\ry,2,"q\nr",1\n'
    rows, rejects, count = encoded(text, job(), start=start)
    assert count == 4
    # Then the lines are counted from the unit's first
    assert [(r.line, r.offset) for r in rejects] == [
        (84, 1000 + text.index(b"x,1")),
        (88, 1000 + text.index(b"y,2")),
    ]
    assert [row[-1] for row in values(rows[0])] == [int8(BASE_US + 50), int8(BASE_US + 52)]


@pytest.mark.parametrize(
    ("first", "end", "kept", "count"),
    [(0, 6, "012345", 6), (2, 4, "23", 2), (4, 99, "45", 2), (0, 1, "0", 1), (6, 9, "", 0)],
)
def test_only_wanted_ordinals_count(first: int, end: int, kept: str, count: int) -> None:
    # Given six records, the second and the fifth of them bad
    text = b"0,1,,\nx,1,,\n2,1,,\n3,1,,\ny,1,,\n5,1,,\n"
    rows, rejects, found = encoded(text, job(ordinal_first=first, ordinal_end=end))
    # Then only those in the window are rows or rejects
    ordinals = [BASE_US + int(digit) for digit in kept if digit not in "14"]
    assert found == count
    assert [row[-1] for part in rows for row in values(part)] == [int8(us) for us in ordinals]
    assert [r.line - 1 for r in rejects] == [int(digit) for digit in kept if digit in "14"]


def test_a_block_of_only_rejects_has_no_rows() -> None:
    rows, rejects, count = encoded(b"x,1,,\ny,1,,\n", job())
    assert (rows, len(rejects), count) == ([], 2, 2)


def test_a_defective_record_is_one_reject() -> None:
    # Given a quote that is never closed on line 2
    text = b'1,1,a,\n2,1,"open,\n3,1,c,\n'
    rows, rejects, count = encoded(text, job())
    # Then only its line is rejected
    assert count == 3
    assert [row[0] for part in rows for row in values(part)] == [int4(1), int4(3)]
    assert [(r.stage, r.line, r.data) for r in rejects] == [("split", 2, b'2,1,"open,')]


def test_a_record_too_long_to_keep_is_stored_as_its_place() -> None:
    # Given a bad record that is longer than the ledger keeps, and one just short enough
    kept = b"x,1," + b"a" * (KEPT_BYTES_MAX - 5) + b","
    long = b"y,1," + b"b" * KEPT_BYTES_MAX + b","
    _, rejects, _ = encoded(kept + b"\n" + long + b"\n", job())
    assert [(r.length, r.data) for r in rejects] == [(KEPT_BYTES_MAX, kept), (len(long), None)]
    assert rejects[1].offset == len(kept) + 1


def test_a_record_longer_than_the_dialect_allows_is_never_parsed() -> None:
    # Given a record longer than allowed, which would make a row
    dialect = CsvDialect(record_bytes_max=100)
    text = b"1,1,a,\n2,1," + b"b" * 500 + b",\n3,1,c,\n"
    rows, rejects, count = encoded(text, job(dialect=dialect))
    assert count == 3
    assert [row[0] for part in rows for row in values(part)] == [int4(1), int4(3)]
    # Then it is a reject with its bytes, which are few enough to keep
    assert [(r.stage, r.line, r.offset, r.length) for r in rejects] == [("split", 2, 7, 505)]
    assert rejects[0].data == text[7:512]


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (0, "empty partition key; Cassandra stores no row under an empty key"),
        (65535, None),
        (65536, "partition key of 65536 bytes; at most 65535 fit"),
    ],
)
def test_partition_keys_are_limited_to_what_cassandra_stores(size: int, reason: str | None) -> None:
    table = table_schema({"id": "text", "v": "int"}, ["id"])
    text = b'"' + b"k" * size + b'",1\n'
    rows, rejects, _ = encoded(text, load_job(table))
    assert [r.reason for r in rejects] == ([reason] if reason else [])
    assert sum(map(len, rows)) == (0 if reason else 1)


def test_composite_partition_keys_count_their_framing_bytes() -> None:
    table = table_schema({"a": "text", "b": "text", "v": "int"}, ["a", "b"])
    # Each part has two bytes of length and one at its end; an empty part is a value like any
    fits, too_long = b"a" * (65535 - 6), b"a" * (65535 - 5)
    rows, rejects, _ = encoded(fits + b',"",1\n' + too_long + b',"",1\n', load_job(table))
    assert sum(map(len, rows)) == 1
    assert [(r.line, r.stage, r.column, r.reason) for r in rejects] == [
        (2, "key", "a", "partition key of 65536 bytes; at most 65535 fit")
    ]


def test_unmapped_fields_are_not_checked() -> None:
    mapped = load_job(
        TABLE, load_source(["x", "k", "c"], mapping=[("k", "id"), ("c", "n")]), base_us=BASE_US
    )
    rows, rejects, _ = encoded(b"\xff,1,2\n", mapped)
    assert rejects == []
    assert values(rows[0]) == [[int4(1), int4(2), int8(BASE_US)]]


def test_rejecting_a_block_of_bad_records_takes_linear_time() -> None:
    # Given 60,000 bad records in one block; counting lines from the start for each took 5 s
    text = b"".join(b"x%07d,1,,\n" % number for number in range(60_000))
    took_s, (_, rejects, _) = quickest(lambda: encoded(text, job()), enough_s=3)
    # Then they are rejected well within a lease
    assert took_s < 3
    assert [r.line for r in rejects] == list(range(1, 60_001))


def test_rows_that_are_sent_later_do_not_get_timestamps_out_of_range() -> None:
    table = table_schema({"id": "int", "tags": "list<int>"}, ["id"])
    job = load_job(table, load_source(["id", "tags"]), base_us=2**63 - 4)
    [rows], _, _ = encoded(b"1,[1]\n2,[2]\n3,[3]\n", job)
    for by_us, dates in ((0, [-4, -3, -2]), (1, [-3, -2, -1]), (1500, [-1, -1, -1])):
        assert [row[-1] for row in values(rows.later(by_us))] == [int8(2**63 + n) for n in dates]


def test_arguments_of_functions_follow_the_constants_and_are_never_unset() -> None:
    source = replace(
        load_source(["id", "n", "day", "x"], mapping=[("id", "id"), ("n", "n")]),
        constants=(("note", "eu"),),
        filled=(("total", "f(?, ?, ?)"),),
        arguments=(
            Argument("day", "f(day, x, n)", CqlType("date")),
            Argument("x", "f(day, x, n)", CqlType("int")),
            Argument("n", "f(day, x, n)", CqlType("bigint")),
        ),
        timestamp_field="x",
    )
    job = load_job(TABLE, source)
    # A job that waits in the ledger has them, and one of an older version none
    assert LoadSource.from_json(source.to_json()) == source
    older = {name: value for name, value in source.to_json().items() if name != "arguments"}
    assert LoadSource.from_json(older) == replace(source, arguments=())
    text = b"1,2,1970-01-02,7\n3,4,,\n5,6,never,8\n"
    (rows,), (reject,), count = encoded(text, job)
    assert (len(rows), count) == (2, 3)
    day = struct.pack(">I", 2**31 + 1)
    assert values(rows) == [
        [int4(1), int4(2), b"eu", day, int4(7), int8(2), int8(7)],
        [int4(3), int4(4), b"eu", None, None, int8(4), int8(job.base_us + 1)],
    ]
    assert (reject.column, reject.stage) == ("day in f(day, x, n)", "cast")
    assert source.columns == ["id", "n", "note"]
    assert "VALUES (?, ?, ?, f(?, ?, ?)) USING" in insert_statement(
        TABLE, source.columns, 0, filled=source.filled
    )
