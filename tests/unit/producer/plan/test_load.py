"""From options to a job: each small decision by itself."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.settings import load_settings
from producer.options.load import LoadOptions
from producer.plan.load import unit_bytes_auto
from producer.request.load import TIMESTAMP_US_MAX, load_draft, parse_timestamp_us
from ringhaul.destination.base import UnitBounds, sstable_unit_bounds
from ringhaul.destination.cql import Cql
from ringhaul.errors import UsageError
from ringhaul.ledger.pace import NO_PACE, Limits, Pace
from tests.options import parse_options

MIB = 1 << 20
REQUESTS = Cql().unit_bounds(transformed=False)
SSTABLES = sstable_unit_bounds(transformed=False)


@pytest.mark.parametrize(
    ("total_bytes", "slots", "unit_bytes"),
    [
        (0, 1, MIB),
        (3 * MIB, 2, MIB),  # never below 1 MiB
        (80 * MIB, 2, 10 * MIB),  # four units for each process
        (80 * MIB, 20, MIB),
        (10 << 30, 2, 64 * MIB),  # never above 64 MiB
    ],
)
def test_units_feed_every_process_and_take_seconds_each(
    total_bytes: int, slots: int, unit_bytes: int
) -> None:
    assert unit_bytes_auto(total_bytes, slots, bounds=REQUESTS) == unit_bytes


@pytest.mark.parametrize(
    ("total_bytes", "transformed", "unit_bytes"),
    [
        (90 * MIB + 1, False, 45 * MIB + 1),  # one for each process, and not a third one
        (10 << 30, False, 1 << 30),  # never above 1 GiB
        (10 << 30, True, 128 * MIB),  # rows may take longer
    ],
)
def test_units_that_make_sstables_are_few(
    total_bytes: int, transformed: bool, unit_bytes: int
) -> None:
    bounds = sstable_unit_bounds(transformed=transformed)
    found = unit_bytes_auto(total_bytes, 2, bounds=bounds)
    assert found == unit_bytes


@pytest.mark.parametrize(
    ("rows_per_s", "slots", "unit_bytes"),
    [
        (1_000_000, 4, 64 * MIB),  # the rate is no limit
        (1000, 4, 3_000_000),  # 30,000 rows of 100 bytes: two minutes at a quarter of the rate
        (1000, 8, 1_500_000),
        (10, 8, 16 << 10),  # never below 16 KiB
    ],
)
def test_units_of_a_paced_load_take_minutes_at_their_share_of_the_rate(
    rows_per_s: int, slots: int, unit_bytes: int
) -> None:
    total_bytes = 10_000_000_000
    found = unit_bytes_auto(
        total_bytes, slots, records_count=10**8, rows_per_s=rows_per_s, bounds=REQUESTS
    )
    assert found == unit_bytes


@pytest.mark.parametrize(
    ("bytes_per_s", "bounds", "unit_bytes"),
    [
        (1_000_000_000, REQUESTS, 64 * MIB),  # the rate is no limit
        (1_000_000, REQUESTS, 30_000_000),  # two minutes at a quarter of the rate
        (10, REQUESTS, 16 << 10),  # never below 16 KiB
        (20_000_000, SSTABLES, 600_000_000),
        (1_000_000, SSTABLES, 256 * MIB),  # never many small files
    ],
)
def test_a_rate_in_bytes_makes_smaller_units(
    bytes_per_s: int, bounds: UnitBounds, unit_bytes: int
) -> None:
    found = unit_bytes_auto(10_000_000_000, 4, bytes_per_s=bytes_per_s, bounds=bounds)
    assert found == unit_bytes


@pytest.mark.parametrize(
    ("text", "timestamp_us"),
    [
        ("0", 0),
        ("-5", -5),
        ("1700000000000001", 1_700_000_000_000_001),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:00.000001", 1),  # UTC where no zone is given
        ("1970-01-01T02:00:00+02:00", 0),
        ("2026-01-31", 1_769_817_600_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        (str(TIMESTAMP_US_MAX), TIMESTAMP_US_MAX),
    ],
)
def test_timestamps_are_microseconds_or_dates(text: str, timestamp_us: int) -> None:
    assert parse_timestamp_us(text) == timestamp_us


@pytest.mark.parametrize("text", ["", "NOW", "--5", "5-", "1e6", "²", "2026-13-01", "12:00"])
def test_an_invalid_timestamp_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_timestamp_us(text)
    assert str(refusal.value) == (
        f"--timestamp {text!r}: give microseconds since 1970, a date such as 2026-01-31T12:00:00Z, "
        "or now"
    )


def test_now_is_the_present_time() -> None:
    before_us = time.time_ns() // 1000
    assert before_us <= parse_timestamp_us("now") <= time.time_ns() // 1000


@pytest.mark.parametrize("text", [str(TIMESTAMP_US_MAX + 1), str(-TIMESTAMP_US_MAX - 1), "9" * 40])
def test_a_timestamp_that_no_row_can_have_is_refused_before_the_job(text: str) -> None:
    with pytest.raises(UsageError, match=f"--timestamp {text}: beyond what Cassandra can hold"):
        parse_timestamp_us(text)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LoadOptions:
    """The options of `ringhaul load x.csv -t orders -k shop`, in a folder without settings."""
    monkeypatch.chdir(tmp_path)
    found: LoadOptions = parse_options("load", "x.csv", "-t", "orders", "-k", "shop")
    return found


def test_defaults_are_those_of_rfc_4180(options: LoadOptions) -> None:
    request = load_draft(options, load_settings())
    assert (request.keyspace, request.table, request.header) == ("shop", "orders", True)
    dialect = request.dialect
    assert (dialect.delimiter, dialect.quote, dialect.escape, dialect.comment) == (
        ",",
        '"',
        None,
        None,
    )
    assert (dialect.encoding, dialect.null_strings) == ("utf-8", ("",))
    assert (bool(request.mapping), request.skip_columns, request.columns) == (False, [], [])
    assert (request.max_errors, request.strategy) == ("1000", "pipeline")
    assert (options.pace, options.priority) == (NO_PACE, "normal")
    assert request.text.true_words == ("true", "t", "yes", "y", "1")


def test_options_reach_the_request(options: LoadOptions) -> None:
    given: dict[str, Any] = {
        "columns": "a, b ,c",
        "mapping": "a=id, 2 = total",
        "skip_columns": "b",
        "delimiter": "\\t",
        "quote": "",
        "escape": "\\",
        "null_strings": ("NULL", "-"),
        "true_words": "ja,J",
        "rate": Limits(rows_per_s=500),
        "priority": "low",
        "skip_rows": 3,
        "max_rows": 10,
        "timestamp_field": "writetime(total)",
        "ttl_field": "3",
    }
    options = replace(options, **given)
    request = load_draft(options, load_settings({"load.max_errors": "5%"}))
    assert (request.columns, request.skip_columns) == (["a", "b", "c"], ["b"])
    assert request.mapping.plain == {"a": "id", "2": "total"}
    assert request.rows_per_s == 500
    dialect = request.dialect
    assert (dialect.delimiter, dialect.quote, dialect.escape) == ("\t", None, "\\")
    assert dialect.null_strings == ("NULL", "-")
    assert request.text.true_words == ("ja", "J")
    assert request.text.false_words == ("false", "f", "no", "n", "0")
    assert (request.skip_rows, request.max_rows) == (3, 10)
    assert (request.timestamp_field, request.ttl_field) == ("writetime(total)", "3")
    pace = Pace(limits=Limits(rows_per_s=500))
    assert (options.pace, options.priority) == (pace, "low")
    assert request.max_errors == "5%"


@pytest.mark.parametrize(
    ("table", "keyspace", "found"),
    [("shop.orders", None, ("shop", "orders")), ("shop.orders", "shop", ("shop", "orders"))],
)
def test_the_table_may_name_its_keyspace(
    options: LoadOptions, table: str, keyspace: str | None, found: tuple[str, str]
) -> None:
    request = load_draft(replace(options, table=table, keyspace=keyspace), load_settings())
    assert (request.keyspace, request.table) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keyspace": None}, "no keyspace: give --keyspace, or --table KEYSPACE.TABLE"),
        ({"table": "a.orders"}, "--table names keyspace a, --keyspace shop"),
        ({"mapping": "id,a=b"}, "--mapping 'id': expected FIELD=COLUMN, separated by commas"),
        ({"mapping": "id=,a=b"}, "--mapping 'id=': expected FIELD=COLUMN, separated by commas"),
        ({"delimiter": "semi"}, "--delimiter: 'semi' is not a name"),
        ({"quote": ","}, "--quote: ',' is already the delimiter"),
        ({"encoding": "klingon"}, "--encoding: 'klingon' is not known"),
        ({"null_strings": ("x" * 5000,)}, "--null: 'xxxxxxxxxxxxxxxxxxxx'... is longer than"),
        ({"epoch_unit": "week"}, "epoch"),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"blob": "octal"}, "octal"),
        ({"given": {"yes"}, "yes": True}, "--yes needs --create-table"),
        ({"given": {"primary_key"}, "primary_key": "a"}, "--primary-key needs --create-table"),
        ({"create_table": True, "transforms": ("m:f",)}, "--transform changes their content"),
        ({"create_table": True, "header": False, "columns": None}, "--no-header needs --columns"),
        ({"create_table": True, "primary_key": " "}, "--primary-key is empty: give A,B"),
        ({"timestamp": "5", "timestamp_field": "at"}, "--timestamp and --timestamp-field both say"),
    ],
)
def test_unusable_options_are_named(
    options: LoadOptions, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        load_draft(replace(options, **given), load_settings())
    assert message in str(refusal.value)
    assert refusal.value.exit_code == 2
