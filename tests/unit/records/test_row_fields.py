"""Write times and TTLs from fields: exact to the microsecond and the second, or rejected."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.formats.jsonl_read import line_dialect
from ringhaul.formats.parquet_read import RowBlock
from ringhaul.formats.split import START, read_blocks
from ringhaul.mapping.field_columns import RowFields, find_row_fields, map_fields
from ringhaul.mapping.language import MappingText, parse_mapping
from ringhaul.mapping.targets import find_named_targets
from ringhaul.records.job import LoadJob
from ringhaul.records.row_fields import TTL, TTL_S_MAX, WRITETIME
from ringhaul.records.rows import RowEncoder
from ringhaul.transform import each_row
from ringhaul.transform.chain import Transform
from ringhaul.transform.errors import TransformError
from tests.cases import each
from tests.loads import blocks, load_job, load_source, table_schema
from tests.unit.records.test_rows import int4, int8, values

TABLE = table_schema({"id": "int", "v": "text"}, ["id"])
BASE_US = 1_000_000
LOST = "(its fraction is lost)"
FIELDS = ("wt", "id", "left", "v")
ROW = RowFields("wt", "left")
#: 2026-01-31T12:00:00Z
NOON_US = 1_769_860_800_000_000

Loaded = tuple[list[list[Any]], list[tuple[int, str | None, str]]]


def job_of(file_format: str = "csv", *, table: TableSchema = TABLE, **options: Any) -> LoadJob:
    source = replace(
        load_source(FIELDS, mapping=[("id", "id"), ("v", "v")]),
        format=file_format,
        timestamp_field=ROW.timestamp,
        ttl_field=ROW.ttl,
        results=FIELDS if options.get("transforms") else (),
    )
    return load_job(table, source, base_us=BASE_US, **options)


def loaded(job: LoadJob, found: list[Any], *functions: Any) -> Loaded:
    """Bound values by row, and line, column and reason of the rejects."""
    transforms = tuple(Transform(f"t:{i}", function) for i, function in enumerate(functions))
    encoder = RowEncoder(job, job.sources[0], transforms)
    rows, rejects = [], []
    for block in found:
        for part in encoder.parts(block):
            rejects += [(reject.line, reject.column, reject.reason) for reject in part.rejects]
            for encoded in part.rows:
                rows += values(encoded)
    return rows, rejects


def csv(records: str, **options: Any) -> Loaded:
    job = job_of(**options)
    return loaded(job, blocks(records.encode(), job.dialect))


def jsonl(records: str, **options: Any) -> Loaded:
    job = job_of("jsonl", **options)
    stream = io.BytesIO(records.encode())
    dialect = line_dialect(job.dialect)
    return loaded(job, list(read_blocks(stream, dialect, block_bytes=1 << 20, start=START)))


def typed(times: pa.Array, ttls: pa.Array, **options: Any) -> Loaded:
    count = len(times)
    names = ["id", "v", "wt", "left"]  # in reading order
    columns = [pa.array(range(count)), pa.array(["x"] * count), times, ttls]
    block = RowBlock(pa.RecordBatch.from_arrays(columns, names), START, 100)
    return loaded(job_of("parquet", **options), [block])


def written(found: Loaded) -> list[Any]:
    """The bound write times; no record may be rejected."""
    assert found[1] == []
    return [struct.unpack(">q", row[2])[0] for row in found[0]]


def test_both_are_bound_after_the_columns_and_nulls_use_the_loads_defaults() -> None:
    # Given records with a write time and a TTL, with one of the two, and with neither
    text = "7,1,60,a\n,2,0,b\n-9,3,,c\n,4,,d\n"
    rows, rejects = csv(text)

    # Then the defaults are the load's timestamp plus the ordinal, and the table's TTL
    assert rejects == []
    assert rows == [
        [int4(1), b"a", int8(7), int4(60)],
        [int4(2), b"b", int8(BASE_US + 1), int4(0)],
        [int4(3), b"c", int8(-9), "unset"],
        [int4(4), b"d", int8(BASE_US + 3), "unset"],
    ]
    # And with --ttl it is that TTL
    assert [row[3] for row in csv(text, ttl_s=500)[0]] == [int4(60), int4(0), int4(500), int4(500)]
    # And JSON Lines and Parquet give the same
    objects = (
        '{"wt":7,"id":1,"left":60,"v":"a"}\n{"id":2,"left":"0","v":"b"}\n'
        '{"wt":"-9","id":3,"left":null,"v":"c"}\n{"wt":null,"id":4,"v":"d"}\n'
    )
    assert jsonl(objects) == (rows, [])
    found, _ = typed(pa.array([7, None, -9, None]), pa.array([60, 0, None, None], pa.int32()))
    assert [row[2:] for row in found] == [row[2:] for row in rows]


@pytest.mark.parametrize("ttl_s", [0, 9])
def test_a_block_with_only_missing_values_is_bound_like_any_load(ttl_s: int) -> None:
    rows, rejects = csv(",1,,a\n", ttl_s=ttl_s)
    assert (rows, rejects) == (
        [[int4(1), b"a", int8(BASE_US), int4(9) if ttl_s else "unset"]],
        [],
    )


@each(
    ("text", "us"),
    [
        ("1769860800123456", 1_769_860_800_123_456),
        (" +5 ", 5),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", -(2**63) + 1),
        ("2026-01-31T12:00:00Z", NOON_US),
        ("2026-01-31 12:00:00.1Z", NOON_US + 100_000),
        ("2026-01-31T12:00:00.123Z", NOON_US + 123_000),
        ("2026-01-31T12:00:00.1234Z", NOON_US + 123_400),
        ("2026-01-31T13:00:00.123456+01:00", NOON_US + 123_456),
        ("2026-01-31T12:00:00.123456000Z", NOON_US + 123_456),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2026-01-31", NOON_US - 12 * 3_600_000_000),
    ],
)
def test_times_are_exact_to_the_microsecond(text: str, us: int) -> None:
    for other in ("", "1,2,,b\n", "2020-02-02T02:02:02.000002Z,3,,c\n"):
        assert written(csv(f"{text},1,,a\n{other}"))[0] == us
    assert written(jsonl(f'{{"wt":"{text}","id":1,"v":"a"}}\n')) == [us]
    assert written(typed(pa.array([text, None]), pa.nulls(2)))[0] == us
    assert written(typed(pa.array([text]).dictionary_encode(), pa.nulls(1))) == [us]


def test_a_time_without_a_zone_is_in_the_zone_of_the_load() -> None:
    text = TextFormat(timezone="Europe/Berlin", timestamp_formats=("%d.%m.%Y",), epoch_unit="s")
    # Options about columns of timestamps do not apply to write times
    found = csv("2026-01-31T13:00:00.000001,1,,a\n17,2,,b\n", text=text)
    assert written(found) == [NOON_US + 1, 17]
    naive = pa.array([NOON_US + 3_600_000_001], pa.timestamp("us"))
    assert written(typed(naive, pa.nulls(1), text=text)) == [NOON_US + 1]


WRONG_TIME = (
    "; give microseconds since 1970 or a time such as 2026-01-31T12:00:00.123456Z, or nothing"
)


@each(
    ("text", "reason"),
    [
        ("soon", '"soon" is not a whole number'),
        ("1.5", f'"1.5" is not a whole number; --rounding half-even reads it as 2 {LOST}'),
        ("2026-1-31", '"2026-1-31" is not a whole number'),
        ("2026-01-31T25", '"2026-01-31T25" is not a timestamp such as 2024-05-31T23:59:59.123Z'),
        ("2026-02-30", '"2026-02-30" has day 30, which the month lacks'),
        (
            "2026-01-31T12:00:00.1234567Z",
            '"2026-01-31T12:00:00.1234567Z" is finer than a microsecond',
        ),
        (
            "+300000-01-01",
            '"+300000-01-01" is outside the write times that Cassandra can hold',
        ),
        (
            "-9223372036854775808",
            "-9223372036854775808 is outside -9223372036854775807..9223372036854775807",
        ),
        (
            "9223372036854775808",
            "9223372036854775808 is outside -9223372036854775808..9223372036854775807",
        ),
        ("17\u00e9", '"17\u00e9" is not a whole number'),
        (
            "2026-01-31\u00e9",
            '"2026-01-31\u00e9" is not a timestamp such as 2024-05-31T23:59:59.123Z',
        ),
    ],
)
def test_a_bad_write_time_costs_its_record(text: str, reason: str) -> None:
    rows, rejects = csv(f"1,1,,a\n,7,,x\n{text},2,,b\n2020-01-01,3,,c\n")
    assert [row[0] for row in rows] == [int4(1), int4(7), int4(3)]
    assert rejects == [(3, "wt", f"cast writetime: {reason}{WRONG_TIME}")]
    assert jsonl(f'{{"wt":"{text}","id":2,"v":"b"}}\n') == ([], [(1, *rejects[0][1:])])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-1", "-1 is outside 0..630720000"),
        ("630720001", "630720001 is outside 0..630720000"),
        ("99999999999", "99999999999 is outside -2147483648..2147483647"),
        ("1h", '"1h" is not a whole number'),
        ("6.5", f'"6.5" is not a whole number; --rounding half-even reads it as 6 {LOST}'),
    ],
)
def test_a_bad_ttl_costs_its_record(text: str, reason: str) -> None:
    rows, rejects = csv(f"1,1,{TTL_S_MAX},a\n,7,,x\n1,2,{text},b\n1,3,0,c\n")
    assert [row[3] for row in rows] == [int4(TTL_S_MAX), "unset", int4(0)]
    advice = "; give whole seconds, at most 630720000 (20 years), or nothing"
    assert rejects == [(3, "left", f"cast ttl: {reason}{advice}")]


def test_json_values_of_other_kinds_are_rejected() -> None:
    objects = '{"wt":[1],"id":1}\n{"wt":true,"id":2}\n{"left":{},"id":3}\n{"wt":1.5,"id":4}\n'
    rows, rejects = jsonl(objects)
    assert rows == []
    assert [(line, column) for line, column, _ in rejects] == [
        (1, "wt"), (2, "wt"), (3, "left"), (4, "wt"),
    ]  # fmt: skip


@each("unit", ["s", "ms", "us", "ns"])
@each("zone", [None, "UTC", "America/Lima"])
def test_timestamps_of_parquet_of_any_unit_are_exact(unit: str, zone: str | None) -> None:
    micros = {"s": 0, "ms": 123_000, "us": 123_456, "ns": 123_456}[unit]
    times = [NOON_US + micros, None, -60_000_000 + micros]
    array = pa.array(times, pa.timestamp("us", zone)).cast(pa.timestamp(unit, zone))
    assert written(typed(array, pa.nulls(3))) == [times[0], BASE_US + 1, times[2]]
    assert written(typed(array.dictionary_encode(), pa.nulls(3)))[2] == times[2]


def test_parquet_times_finer_than_microseconds_or_beyond_int64_are_rejected() -> None:
    fine = pa.array([1000, 1001, -1], pa.timestamp("ns", "UTC"))
    rows, rejects = typed(fine, pa.nulls(3))
    assert [row[2] for row in rows] == [int8(1)]
    reasons = [
        f"cast writetime: {value} is finer than a microsecond{WRONG_TIME}"
        for value in ("1970-01-01T00:00:00.000001001Z", "1969-12-31T23:59:59.999999999Z")
    ]
    assert [(line, why) for line, _, why in rejects] == [(2, reasons[0]), (3, reasons[1])]
    far = pa.array([2**62, 0], pa.timestamp("s", "UTC"))
    assert [line for line, _, _ in typed(far, pa.nulls(2))[1]] == [1]
    beyond = pa.array([2**61 // 1000, 0], pa.timestamp("s"))
    ((line, _, why),) = typed(beyond, pa.nulls(2))[1]
    assert line == 1
    assert why.startswith("cast writetime: +73071226-02-26T19:48:13 ")
    assert why.endswith(f" is outside the write times that Cassandra can hold{WRONG_TIME}")
    unsigned = pa.array([2**63, 2**63 - 1], pa.uint64())
    rows, rejects = typed(unsigned, pa.array([1.0, 2.0]))
    assert ([row[2:] for row in rows], len(rejects)) == ([[int8(2**63 - 1), int4(2)]], 1)
    # And as pandas stores whole numbers with nulls: as floats
    assert written(typed(pa.array([5.0, None]), pa.nulls(2))) == [5, BASE_US + 1]
    assert typed(pa.array([5.5]), pa.nulls(1))[1][0][1] == "wt"


def test_types_that_cannot_be_a_write_time_or_a_ttl_are_refused() -> None:
    assert WRITETIME.refusal(pa.bool_()) == "bool does not become a write time"
    assert WRITETIME.refusal(pa.binary()) == "binary does not become a write time"
    assert TTL.refusal(pa.timestamp("us")) == "timestamp[us] does not become a TTL"
    for fits in (pa.int64(), pa.string(), pa.timestamp("ns"), pa.date32(), pa.null()):
        assert WRITETIME.refusal(fits) is None
    for fits in (pa.int8(), pa.int64(), pa.string(), pa.null()):
        assert TTL.refusal(fits) is None


def through(function: Any, text: str = "1\n2\n3\n", **options: Any) -> Loaded:
    job = job_of(transforms=("t:0",), **options)
    job = replace(job, sources=(replace(job.sources[0], fields=("a",)),))
    return loaded(job, blocks(text.encode(), job.dialect), function)


def test_columns_of_transforms_can_be_write_times_and_ttls() -> None:
    east = timezone(timedelta(hours=2))
    times = [datetime(2026, 1, 31, 14, 0, 0, 123456, tzinfo=east), 5, None, datetime(1970, 1, 1)]
    ttls_s = [60, None, "7", 0]

    @each_row
    def give(row: dict[str, Any]) -> dict[str, Any]:
        number = int(row["a"])
        return {"id": number, "v": "x", "wt": times[number], "left": ttls_s[number]}

    rows, rejects = through(give, "0\n1\n2\n3\n")
    assert rejects == []
    assert [row[2:] for row in rows] == [
        [int8(NOON_US + 123_456), int4(60)],
        [int8(5), "unset"],
        [int8(BASE_US + 2), int4(7)],
        [int8(0), int4(0)],
    ]

    def give_bad(batch: pa.RecordBatch) -> pa.RecordBatch:
        names = {"id": batch.column("a"), "v": batch.column("a"), "left": batch.column("a")}
        return pa.RecordBatch.from_pydict({**names, "wt": pa.array([True] * 3)})

    with pytest.raises(TransformError, match="'wt' for the write time, and bool does not"):
        through(give_bad)


def test_a_condition_tests_columns_and_not_fields_of_the_same_name() -> None:
    # Given a table with a column of the same name as the field with the TTL
    table = table_schema({"id": "int", "v": "text", "left": "int"}, ["id"])
    job = job_of(table=table, where="v <> 'b'")
    rows, rejects = loaded(
        job, blocks(b"1,1,60,a\nbad,2,bad,b\n3,3,70,c\nbad,4,1,d\n", job.dialect)
    )
    # Then rows that do not meet it are left out, whatever their fields hold
    assert rows == [
        [int4(1), b"a", int8(1), int4(60)],
        [int4(3), b"c", int8(3), int4(70)],
    ]
    assert [(line, column) for line, column, _ in rejects] == [(4, "wt")]


def test_the_job_stores_them_for_its_workers() -> None:
    job = job_of()
    assert LoadJob.from_json(job.to_json()) == job
    assert job.sources[0].wanted(job) == ["id", "v", "wt", "left"]
    kinds = [kind and kind.name for kind in job.sources[0].wanted_types(job)]
    assert kinds == ["int", "text", "bigint", "int"]


def test_fields_are_found_by_name_or_position_and_need_no_column() -> None:
    names = ["id", "v", "writetime(v)", "ttl(v)"]
    row = find_row_fields(names, RowFields("writetime(v)", "3"), source="a.csv")
    assert row == RowFields("writetime(v)", "ttl(v)")
    pairs = map_fields(names, TABLE, skip=(), source="a.csv", taken=row)
    assert pairs == (("id", "id"), ("v", "v"))
    # And fields named like columns are also loaded into them, unless they are skipped
    wide = table_schema({"id": "int", "v": "text", "left": "int"}, ["id"])
    row = RowFields(ttl="left")
    fields, found = find_named_targets(wide, mapping=MappingText(), skip=(), source="a", taken=row)
    pairs = found.mapping
    assert (set(fields), len(pairs)) == ({"id", "v", "left"}, 3)
    fields, found = find_named_targets(
        wide, mapping=MappingText(), skip=["left"], source="a", taken=row
    )
    pairs = found.mapping
    assert (set(fields), set(pairs)) == ({"id", "v", "left"}, {("id", "id"), ("v", "v")})
    fields, found = find_named_targets(
        wide, mapping=parse_mapping("id=id"), skip=(), source="a", taken=row
    )
    pairs = found.mapping
    assert (set(fields), pairs) == ({"id", "left"}, (("id", "id"),))


@pytest.mark.parametrize(
    ("names", "wanted", "words"),
    [
        ("id wt", RowFields("writetime"), "--timestamp-field names field 'writetime', which"),
        ("id wt", RowFields(ttl="2"), "--ttl-field names field '2', which it does not have"),
        ("id wt", RowFields("wt", "1"), "both name field 'wt': give each its own field"),
        ("id wt wt", RowFields("wt"), "2 fields are named 'wt'; name all fields by --columns"),
    ],
)
def test_missing_fields_are_refused(names: str, wanted: RowFields, words: str) -> None:
    with pytest.raises(UsageError, match=f"^a.csv: .*{words}"):
        find_row_fields(names.split(), wanted, source="a.csv")


WIDE = table_schema({"id": "int", "v": "text", "wt": "timestamp", "left": "int"}, ["id"])
WIDE_PAIRS = [("wt", "wt"), ("id", "id"), ("left", "left"), ("v", "v")]


@pytest.mark.parametrize("where", ["", "left > 0"])
@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet", "transform"])
def test_fields_that_are_columns_too_are_loaded_into_both(file_format: str, where: str) -> None:
    # Given a table that has columns with the names of both fields
    options: dict[str, Any] = {"where": where}
    if file_format == "transform":
        file_format, options["transforms"] = "csv", ("t:0",)
    job = job_of(file_format, table=WIDE, **options)
    job = replace(job, sources=(replace(job.sources[0], mapping=tuple(WIDE_PAIRS)),))
    assert list(job.sources[0].wanted(job)) == ["wt", "id", "left", "v"]

    # And a good record, and one whose time is too fine to be a write time
    at, finer = "2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123456789Z"
    records = [[at, 1, 60, "a"], [finer, 2, 70, "b"]]
    if file_format == "csv":
        text = "".join(",".join(map(str, record)) + "\n" for record in records)
        found = blocks(text.encode(), job.dialect)
    elif file_format == "jsonl":
        text = "".join(
            json.dumps(dict(zip(FIELDS, record, strict=True))) + "\n" for record in records
        )
        dialect = line_dialect(job.dialect)
        found = list(
            read_blocks(io.BytesIO(text.encode()), dialect, block_bytes=1 << 20, start=START)
        )
    else:
        columns = [pa.array(values) for values in zip(*records, strict=True)]
        times = pa.array([NOON_US * 1000 + 123_456_000, NOON_US * 1000 + 123_456_789])
        columns[0] = times.cast(pa.timestamp("ns", "UTC"))
        found = [RowBlock(pa.RecordBatch.from_arrays(columns, FIELDS), START, 100)]
    rows, rejects = loaded(job, found, *([lambda batch: batch] if "transforms" in options else []))

    # Then the row has them in its columns, in their own precision, and as write time and TTL
    assert rows == [
        [int8(NOON_US // 1000 + 123), int4(1), int4(60), b"a", int8(NOON_US + 123_456), int4(60)]
    ]
    assert [column for _, column, _ in rejects] == ["wt"]


def test_a_kept_row_of_parquet_has_each_field_once() -> None:
    job = job_of("parquet", table=WIDE)
    job = replace(job, sources=(replace(job.sources[0], mapping=tuple(WIDE_PAIRS)),))
    kinds = [kind and kind.name for kind in job.sources[0].wanted_types(job)]
    assert kinds == ["timestamp", "int", "int", "text"]


def test_without_positions_a_number_is_a_name() -> None:
    with pytest.raises(UsageError, match="--ttl-field names field '1'"):
        find_row_fields(["id", "x"], RowFields(ttl="1"), source="a", positions=False)
