"""Records through transforms and a condition: each is loaded, left out, or rejected."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.formats.jsonl_read import line_dialect
from ringhaul.formats.parquet_read import RowBlock
from ringhaul.formats.split import Position, read_blocks
from ringhaul.query.errors import QueryError
from ringhaul.records.account import Tally, UnitMiscounted
from ringhaul.records.condition import record_condition
from ringhaul.records.field_readers import AnyBlock
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rejects import Reject
from ringhaul.records.rows import Part, RowEncoder
from ringhaul.sources.source import SourceFile
from ringhaul.transform import RECORD, each_row
from ringhaul.transform.chain import Transform
from ringhaul.transform.errors import TransformError
from tests.loads import blocks, load_job, load_source, table_schema
from tests.unit.records.test_rows import int4, int8, values

TABLE = table_schema({"id": "int", "n": "int", "note": "text", "tags": "list<int>"}, ["id"], ["n"])
BASE_US = 1_000_000


class Loaded(NamedTuple):
    """The results of all blocks of a source, combined."""

    rows: list[list[bytes | str | None]]
    rejects: list[Reject]
    tally: Tally


def source_of(
    fields: str, *, file_format: str = "csv", results: str | None = None, **options: Any
) -> LoadSource:
    """A source with these fields; `results`: the columns of transforms to load instead."""
    names = fields.split()
    loaded = (results or fields).split()
    return LoadSource(
        file=SourceFile("/data/x", 0, False),
        fields=tuple(names),
        mapping=tuple((name, name) for name in loaded),
        results=tuple(loaded) if results else (),
        format=file_format,
        **options,
    )


def job_of(
    source: LoadSource, *functions: Any, table: TableSchema = TABLE, **options: Any
) -> tuple[LoadJob, RowEncoder]:
    transforms = tuple(Transform(f"t:{i}", function) for i, function in enumerate(functions))
    names = tuple(transform.name for transform in transforms)
    job = load_job(table, source, base_us=BASE_US, transforms=names, **options)
    return job, RowEncoder(job, source, transforms)


def loaded(encoder: RowEncoder, found: Sequence[AnyBlock]) -> Loaded:
    tally, rows, rejects = Tally(), [], []
    for block in found:
        for part in encoder.parts(block):
            tally.take(part)
            rejects += part.rejects
            for encoded in part.rows:
                rows += values(encoded)
    tally.check(len(rows), "x")
    assert len(rejects) == tally.rejected
    return Loaded(rows, rejects, tally)


def csv(text: bytes, source: LoadSource, *functions: Any, **options: Any) -> Loaded:
    job, encoder = job_of(source, *functions, **options)
    return loaded(encoder, blocks(text, job.dialect))


def facts_of(rejects: Sequence[Reject]) -> list[tuple[int, str, str | None, str]]:
    return [(r.line, r.stage, r.column, r.reason) for r in rejects]


def test_a_transform_gets_the_fields_as_text_and_gives_columns() -> None:
    seen: list[pa.RecordBatch] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch)
        return pa.RecordBatch.from_pydict(
            {"n": pa.array([7] * batch.num_rows), "id": batch.column("a")}
        )

    found = csv(b'1,"x"\n2,\n', source_of("a b", results="n id"), look)

    assert seen[0].to_pydict() == {"a": ["1", "2"], "b": ["x", None], RECORD: [0, 1]}
    assert found.rows == [
        [int4(7), int4(1), int8(BASE_US)],
        [int4(7), int4(2), int8(BASE_US + 1)],
    ]


def test_rows_have_the_timestamp_of_their_record_and_rejects_its_place() -> None:
    # Given records 0 to 5: even ones become three rows, odd ones none
    def spread(batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = batch.column(RECORD).to_pylist()
        even = [n for n, a in zip(numbers, batch.column("a").to_pylist(), strict=True)
                if int(a) % 2 == 0]  # fmt: skip
        rows = batch.take(pa.array([n for n in even for _ in range(3)], pa.int64()))
        return pa.RecordBatch.from_pydict(
            {
                "id": rows.column("a"),
                "n": pa.array([str(i % 3) for i in range(rows.num_rows)]),
                "note": pc.if_else(pc.equal(rows.column("a"), "2"), b"\xff", b"ok"),
                RECORD: rows.column(RECORD),
            }
        )

    text = b"".join(b"%d\n" % n for n in range(6))
    found = csv(text, source_of("a", results="id n note"), spread)

    assert found.rows == [
        [int4(a), int4(n), b"ok", int8(BASE_US + a)] for a in (0, 4) for n in range(3)
    ]
    # Then a bad row rejects its record, once
    (reject,) = found.rejects
    assert (reject.line, reject.offset, reject.stage, reject.column, reject.data) == (
        3, 4, "cast", "note", b"2",
    )  # fmt: skip
    tally = found.tally
    assert (tally.records, tally.loaded, tally.dropped, tally.rejected) == (6, 2, 3, 1)


def test_records_that_make_a_function_raise_are_rejects_with_its_message() -> None:
    def picky(batch: pa.RecordBatch) -> pa.RecordBatch:
        if "3" in batch.column("id").to_pylist():
            raise ValueError("no threes")
        return batch

    text = b"id,n\n1,1\n2,x\n3,3\n4\n5,5\n".split(b"\n", 1)[1]
    found = csv(text, source_of("id n", results="id n"), picky)

    assert [row[0] for row in found.rows] == [int4(1), int4(5)]
    assert sorted(facts_of(found.rejects)) == [
        (2, "cast", "n", 'cast int: "x" is not a whole number'),
        (3, "transform", None, "t:0: ValueError: no threes"),
        (
            4,
            "parse",
            None,
            "has 1 field, expected 2; --allow-missing-fields takes the others as nulls",
        ),
    ]


def test_invalid_utf_8_rejects_its_record_before_the_transform() -> None:
    text = b"1,1,a\n2,2,\xff\n3,3,c\n"
    found = csv(text, source_of("id n note", results="id n note"), lambda batch: batch)
    assert [row[2] for row in found.rows] == [b"a", b"c"]
    assert facts_of(found.rejects) == [(2, "parse", "note", "invalid UTF-8 at byte 1")]


def test_only_wanted_records_reach_a_transform() -> None:
    seen: list[str] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.extend(batch.column("id").to_pylist())
        return batch

    source = source_of("id n", results="id n")
    found = csv(b"1,1\n2,2\n3,3\n4,4\n", source, look, ordinal_first=1, ordinal_end=3)
    assert seen == ["2", "3"]
    assert [row[-1] for row in found.rows] == [int8(BASE_US + 1), int8(BASE_US + 2)]
    assert found.tally.records == 2


def test_a_transform_gets_json_values_as_text_and_nested_ones_as_json() -> None:
    seen: list[dict[str, Any]] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.extend(batch.to_pylist())
        return batch

    source = source_of("id n note tags", file_format="jsonl", results="id n note tags")
    job, encoder = job_of(source, look)
    text = (
        b'{"id": 1, "n": 1.50e0, "note": "x", "tags": [1, 2.0, {"a\\"": null}]}\n'
        b'{"id": 2, "n": 3, "note": true}\n'
        b'{"id": 3, "n": 4, "tags": [5, 6], "note": "\\ud800"}\n'
        b'{"id": 4, "n": 5, "tags": ["7"]}\n'
        b'{"id": 5, "n": 5, "more": 1}\n'
    )
    dialect = line_dialect(job.dialect)
    found = loaded(
        encoder, list(read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=START))
    )

    assert seen == [
        {"id": "1", "n": "1.50e0", "note": "x", "tags": '[1,2.0,{"a\\"":null}]', RECORD: 0},
        {"id": "2", "n": "3", "note": "true", "tags": None, RECORD: 1},
        {"id": "4", "n": "5", "note": None, "tags": '["7"]', RECORD: 2},
    ]
    assert [row[0] for row in found.rows] == [int4(2), int4(4)]
    assert found.rows[1][3] == struct.pack(">iii", 1, 4, 7)
    assert [(line, column) for line, _, column, _ in sorted(facts_of(found.rejects))] == [
        (1, "n"),
        (3, "note"),
        (5, None),
    ]


def test_json_numbers_keep_their_spelling_through_a_transform() -> None:
    spelling = TextFormat(
        decimal_sep=",", thousands_sep=".", true_words=("ja",), false_words=("nein",)
    )
    table = table_schema({"id": "int", "price": "decimal", "ok": "boolean"}, ["id"])
    text = b'{"id": 1, "price": 1.500, "ok": true}\n{"id": 2, "price": "2.500", "ok": "nein"}\n'

    @each_row
    def by_row(row: dict[str, Any]) -> dict[str, Any]:
        return row

    plain: list[Any] = []
    for functions in ((), (lambda batch: batch,), (by_row,)):
        source = source_of(
            "id price ok", file_format="jsonl", results="id price ok" if functions else None
        )
        job, encoder = job_of(source, *functions, table=table, text=spelling)
        dialect = line_dialect(job.dialect)
        found = loaded(
            encoder, list(read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=START))
        )
        assert found.rejects == []
        plain.append(found.rows)

    assert plain[0] == plain[1] == plain[2]
    assert [row[1:3] for row in plain[0]] == [
        [b"\0\0\0\3" + (1500).to_bytes(2, "big"), b"\1"],
        [b"\0\0\0\3" + (2500).to_bytes(2, "big"), b"\0"],
    ]


START = Position(0, 0, 1)


def parquet_block(**columns: Any) -> RowBlock:
    return RowBlock(pa.RecordBatch.from_pydict(columns), Position(0, 10, 1), 100)


def test_parquet_keeps_its_types_and_its_rejects_their_values() -> None:
    def smaller(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(1, "n", pc.subtract(batch.column("n"), 2**40))

    source = source_of("id n extra", file_format="parquet", results="id n extra")
    source = replace(source, mapping=(("id", "id"), ("n", "n")))
    _, encoder = job_of(source, smaller)
    block = parquet_block(id=[1, 2], n=[2**40 + 5, 1], extra=[b"\1", b"\2"])
    found = loaded(encoder, [block])

    assert found.rows == [[int4(1), int4(5), int8(BASE_US + 10)]]
    (reject,) = found.rejects
    assert (reject.line, reject.column, reject.data) == (
        2, "n", b'{"id": 2, "n": 1, "extra": "0x02"}',
    )  # fmt: skip


def test_functions_of_rows_return_values_of_any_kind() -> None:
    @each_row
    def made(row: dict[str, Any]) -> dict[str, Any]:
        number = int(row["a"])
        note = object() if number == 2 else 1.5
        return {"id": number, "n": row["a"], "note": note, "tags": [number]}

    found = csv(b"1\n2\nx\n", source_of("a", results="id n note tags"), made)

    assert found.rows == [[int4(1), int4(1), b"1.5", struct.pack(">iii", 1, 4, 1), int8(BASE_US)]]
    assert facts_of(found.rejects) == [
        (2, "cast", "note", "cast text: a object is not a value of a column"),
        (3, "transform", None, "t:0: ValueError: invalid literal for int() with base 10: 'x'"),
    ]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"id": ["1"]}, "gave no column 'n', as it did for the first records"),
        ({"id": ["1"], "n": ["1"], "x": ["1"]}, "gave a column 'x', which it did not give"),
        ({"id": ["1"], "n": [1.5j.imag], "note": [1]}, "gave a column 'note'"),
        ({"id": ["1"], "n": [b"1"]}, "gave a column 'n' for n, and binary does not become int"),
    ],
)
def test_other_columns_than_were_planned_end_the_job(columns: Any, why: str) -> None:
    with pytest.raises(TransformError, match="transform t:0 ") as caught:
        csv(
            b"1,1\n",
            source_of("id n", results="id n"),
            lambda batch: pa.RecordBatch.from_pydict(columns),
        )
    assert why in str(caught.value)


CONDITIONS = b"1,1,a,[1]\n2,,b,[2]\n3,3,c,[x]\nx,4,d,\n5,y,e,[5]\n6,6,,\n"


@pytest.mark.parametrize(
    ("where", "ids", "filtered", "rejected"),
    [
        ("n > 2", [6], 2, {3, 4, 5}),
        ("n > 3", [6], 3, {4, 5}),  # tags of 3 are not parsed
        ("note IN ('a', 'c') AND id < 3", [1], 4, {4}),
        ("note IS NULL", [6], 5, set()),
        ("n IS NULL OR note = 'a'", [1], 3, {2, 5}),  # null in the key
        ("1 = 1", [1, 6], 0, {2, 3, 4, 5}),
        ("id >= 100", [], 5, {4}),
    ],
)
def test_a_condition_tests_the_values_that_the_table_would_hold(
    where: str, ids: list[int], filtered: int, rejected: set[int]
) -> None:
    found = csv(CONDITIONS, source_of("id n note tags"), where=where)

    assert [row[0] for row in found.rows] == [int4(n) for n in ids]
    assert [row[-1] for row in found.rows] == [int8(BASE_US + n - 1) for n in ids]
    assert {reject.line for reject in found.rejects} == rejected
    assert found.tally.filtered == filtered
    assert (found.tally.loaded, found.tally.dropped) == (len(ids), 0)


@pytest.mark.parametrize(
    ("kind", "empty"), [("list<int>", True), ("set<int>", True), ("frozen<list<int>>", False)]
)
@pytest.mark.parametrize("nulls", ["unset", "tombstone"])
def test_an_empty_collection_is_null_unless_it_is_frozen(
    kind: str, empty: bool, nulls: str
) -> None:
    table = table_schema({"id": "int", "tags": kind, "m": "map<int, int>"}, ["id"])
    text = b"1,[],{}\n2,[5],\n3,,[]\n4,[0],\n"
    for where, ids in (
        ("tags IS NULL", [1, 3] if empty else [3]),
        ("tags IS NOT NULL", [2, 4] if empty else [1, 2, 4]),
        ("m IS NULL", [1, 2, 3, 4]),
    ):
        job, encoder = job_of(source_of("id tags m"), table=table, where=where, nulls=nulls)
        found = loaded(encoder, list(blocks(text, job.dialect)))
        assert [row[0] for row in found.rows] == [int4(n) for n in ids]


def test_a_condition_tests_json_and_parquet_by_the_types_of_the_table() -> None:
    source = source_of("id n note tags", file_format="jsonl")
    job, encoder = job_of(source, where="n > 9")
    text = b'{"id": 1, "n": 10}\n{"id": 2, "n": 9}\n{"id": 3, "n": "11", "tags": [1]}\n{"id": 4}\n'
    dialect = line_dialect(job.dialect)
    found = loaded(
        encoder, list(read_blocks(io.BytesIO(text), dialect, block_bytes=1 << 20, start=START))
    )
    assert [row[0] for row in found.rows] == [int4(1), int4(3)]
    assert found.tally.filtered == 2

    _, encoder = job_of(source_of("id n", file_format="parquet"), where="n > 9")
    block = parquet_block(id=[1, 2, 3], n=pa.array([10.0, 9.0, 10.5]))
    found = loaded(encoder, [block])
    assert [row[0] for row in found.rows] == [int4(1)]
    assert facts_of(found.rejects) == [(3, "cast", "n", "cast int: 10.5 is not a whole number")]
    assert found.tally.filtered == 1


def test_a_condition_tests_the_rows_of_a_transform() -> None:
    @each_row
    def spread(row: dict[str, Any]) -> Any:
        return [{"id": row["id"], "n": n} for n in range(int(row["n"]))]

    found = csv(b"1,3\n2,1\n3,0\n4,5\n", source_of("id n", results="id n"), spread, where="n >= 2")

    assert [row[:2] for row in found.rows] == [
        [int4(1), int4(2)], [int4(4), int4(2)], [int4(4), int4(3)], [int4(4), int4(4)],
    ]  # fmt: skip
    tally = found.tally
    assert (tally.loaded, tally.filtered, tally.dropped, tally.rejected) == (2, 1, 1, 0)


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("total > 5", QueryError, "no column 'total' in table shop.orders"),
        ("n = 'x'", QueryError, "n"),
        ("n > 5; DROP", QueryError, ""),
        ("token(id) > 5", UsageError, "token() is known only for rows of the table"),
        ("writetime(note) > 5", UsageError, "writetime(note) is known only for rows of the table"),
        ("tags IS NULL", UsageError, "column 'tags' cannot be used"),
    ],
)
def test_conditions_that_cannot_be_tested_are_refused(
    where: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        record_condition(where, TABLE, ["id", "n", "note"])
    assert message in str(caught.value)


def test_a_record_is_rejected_once_whatever_its_other_rows_are() -> None:
    @each_row
    def thrice(row: dict[str, Any]) -> Any:
        return [{"id": row["id"], "n": n} for n in range(3)]

    _, encoder = job_of(source_of("id", results="id n"), thrice)
    (block,) = blocks(b"1\n2\n", load_job(TABLE).dialect)
    tally = Tally()
    parts: list[Part] = list(encoder.parts(block))
    for part in parts:
        tally.take(part)
    (rows,) = parts[0].rows

    assert [tally.refuse(rows, row) for row in (0, 2, 3)] == [True, False, True]

    assert (tally.records, tally.loaded, tally.rejected) == (2, 0, 2)
    tally.check(3, "x")
    with pytest.raises(UnitMiscounted, match="x: 2 records, of which 0 loaded"):
        tally.check(4, "x")


def test_a_job_without_transform_and_condition_is_encoded_directly() -> None:
    job = load_job(TABLE, load_source(["id", "n"]), base_us=BASE_US)
    encoder = RowEncoder(job, job.sources[0])
    (block,) = blocks(b"1,1\n2,x\n3,3\n", job.dialect)
    (part,) = encoder.parts(block)
    (rows,), rejects, count = encoder.encode(block)
    assert (part.records, part.loaded, part.rejects) == (count, 2, rejects)
    assert [values(found) for found in part.rows] == [values(rows)]
