"""A unit sends heartbeats while a long record is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringhaul.formats.dialect import CsvDialect
from ringhaul.records.account import Account, UnitHooks
from ringhaul.records.job import LoadJob
from ringhaul.records.rows import RowEncoder
from ringhaul.records.unit import UNCOUNTED, LoadUnit
from tests.loads import load_job, load_source, table_schema
from tests.throttles import Limited

MIB = 2**20
#: Bytes that may be read or scanned between two ticks.
QUIET_BYTES = 5 * MIB


class Stopped(Exception):
    """Raised by a tick to stop its unit."""


def hostile(folder: Path, size_bytes: int) -> tuple[LoadJob, LoadUnit]:
    """A unit of one record of escaped line ends, longer than the limit."""
    path = folder / "in.csv"
    path.write_bytes(b"\\\n" * (size_bytes // 2))
    table = table_schema({"id": "int"}, ["id"])
    source = load_source(["id"], path=str(path), size_bytes=size_bytes)
    dialect = CsvDialect(quote=None, escape="\\", record_bytes_max=size_bytes // 2)
    unit = LoadUnit(0, 0, size_bytes, 0, 1, UNCOUNTED)
    return load_job(table, source, dialect=dialect, block_bytes=64 * 2**10), unit


def test_a_unit_ticks_while_one_record_is_read(tmp_path: Path) -> None:
    size = 24 * MIB
    job, unit = hostile(tmp_path, size)
    ticks: list[int] = []
    hooks = UnitHooks(tick=lambda rows, rejected, input_bytes: ticks.append(input_bytes))
    account = Account(unit, job, RowEncoder(job, job.sources[0]), hooks)

    assert list(account.rows()) == []
    # It is read once, and the half that is kept is scanned at least twice.
    assert sum(taken < size for taken in ticks) > 2 * size // QUIET_BYTES


def test_a_unit_is_stopped_while_one_record_is_read(tmp_path: Path) -> None:
    job, unit = hostile(tmp_path, 24 * MIB)

    def tick(rows: int, rejected: int, input_bytes: int) -> None:
        raise Stopped

    account = Account(unit, job, RowEncoder(job, job.sources[0]), UnitHooks(tick=tick))
    with pytest.raises(Stopped):
        next(account.rows())


@pytest.mark.parametrize("pays_input", [True, False])
def test_the_input_is_paid_for_unless_what_is_sent_is(tmp_path: Path, pays_input: bool) -> None:
    path = tmp_path / "in.csv"
    path.write_text("1\n2\n3\n")
    table = table_schema({"id": "int"}, ["id"])
    job = load_job(table, load_source(["id"], path=str(path), size_bytes=6))
    throttle = Limited()
    hooks = UnitHooks(tick=lambda rows, rejected, input_bytes: None, throttle=throttle)
    encoder = RowEncoder(job, job.sources[0])
    unit = LoadUnit(0, 0, 6, 0, 1, UNCOUNTED)
    account = Account(unit, job, encoder, hooks, pays_input=pays_input)

    for rows in account.rows():
        account.throttle(len(rows))

    assert (throttle.rows, throttle.bytes) == (3, 6 if pays_input else 0)
    assert account.spend(100) == 100
    assert throttle.bytes == (106 if pays_input else 100)
