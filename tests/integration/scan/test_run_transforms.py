"""Transforms of the rows of one unit of an unload: what they drop and reject, and their pauses."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cassandra.cluster import Session

from ringhaul.errors import TooManyRejects, UnitPaused
from ringhaul.records.rejects import unpack_rejects
from ringhaul.scan.sinks import Given
from ringhaul.statements.result import split_extra
from ringhaul.transform import each_row
from tests.integration.scan.rows import ROWS, Rows, by_key
from tests.integration.scan.units import (
    NEVER,
    Died,
    names,
    parts_of,
    read_parts,
    transform,
    unload,
)


def test_dropped_and_rejected_rows_are_counted_once_over_all_attempts(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    # Given a function that drops two of three rows, and fails on two rows
    def thirds(batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = batch.column("c").to_pylist()
        for bad in (60_000, 150_001):
            if bad in numbers:
                raise ValueError(f"{bad} is bad")
        return batch.filter(pa.array([number % 3 == 0 for number in numbers], pa.bool_()))

    unit = unload(cassandra_session, rows, tmp_path)
    transform(unit, "t:thirds", thirds)

    # When attempts die and others continue
    for dies_at in (5_000, 30_000, 60_000):
        unit.die(dies_at)
    outcome = unit.attempt()

    # Then rows, drops and rejects are counted once each
    c = rows.expected["c"].to_numpy()
    kept = (c % 3 == 0) & (c != 60_000)
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == rows.expected.filter(pa.array(kept))
    assert outcome.given == Given(ROWS, dropped=ROWS - int(kept.sum()) - 2, rejected=2)
    assert (outcome.rows, outcome.rows_read) == (int(kept.sum()), ROWS)
    rejects = list(unpack_rejects(outcome.extra.partition(b"\n")[2]))
    assert sorted((reject.reason, json.loads(reject.data or b"")["c"]) for reject in rejects) == [
        ("t:thirds: ValueError: 150001 is bad", 150_001),
        ("t:thirds: ValueError: 60000 is bad", 60_000),
    ]


def test_a_unit_with_too_many_rejects_stops_before_its_end(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    # Given a function that fails on every tenth row
    @each_row
    def picky(row: dict[str, Any]) -> dict[str, Any]:
        if row["c"] % 10 == 0:
            raise ValueError("a tenth")
        return row

    unit = unload(cassandra_session, rows, tmp_path, where=" WHERE c < 20000")
    transform(unit, "t:picky", picky)
    tenths = sum(1 for c in rows.expected["c"].to_pylist() if c < 20_000 and c % 10 == 0)

    # When it has more rejects than the job allows, then it stops before its end
    with pytest.raises(TooManyRejects) as stop:
        unit.attempt(rejects_max=50, checkpoint_s=NEVER)
    assert 50 < stop.value.rejected == unit.seen_rejected[-1] < tenths
    # And it leaves its rejects, and no part or row
    assert (stop.value.rows, stop.value.input_bytes) == (0, 0)
    parts, log = split_extra(stop.value.rejects_blob)
    kept = list(unpack_rejects(log))
    assert (parts, len(kept)) == ([], stop.value.rejected)
    assert {json.loads(reject.data or b"")["c"] % 10 for reject in kept} == {0}
    assert names(tmp_path) == []

    # When there are no more than allowed, then it completes
    outcome = unit.attempt(rejects_max=tenths, checkpoint_s=NEVER)
    assert (outcome.given or Given()).rejected == tenths == unit.seen_rejected[-1]


def test_a_slow_transform_renews_its_lease_and_a_pause_waits_for_the_end_of_its_batch(
    cassandra_session: Session, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a function of rows, and a lease renewal between any two of them
    calls = 0

    @each_row
    def same(row: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        return row

    monkeypatch.setattr(importlib.import_module("ringhaul.transform.each_row"), "TICK_S", 0.0)
    unit = unload(cassandra_session, rows, tmp_path, where=" WHERE c < 20000")
    transform(unit, "t:same", same)
    calls_at_loss: list[int] = []

    def in_the_middle() -> bool:
        if calls >= 2500:
            calls_at_loss.append(calls)
        return bool(calls_at_loss)

    # When the unit is lost in the middle of a batch, then no row of that batch counts
    with pytest.raises(Died):
        unit.attempt(checkpoint_s=NEVER, dies=in_the_middle)
    assert calls_at_loss == [2500]
    assert names(tmp_path) == []

    # When it is paused there, then the whole batch counts
    calls = 0
    calls_at_loss.clear()
    with pytest.raises(UnitPaused):
        unit.attempt(checkpoint_s=NEVER, of=UnitPaused, dies=in_the_middle)
    assert calls_at_loss[0] == 2500
    assert unit.counted[0] == calls > 2500

    # And the unit continues after it: the function got each row once
    outcome = unit.attempt(checkpoint_s=NEVER)
    wanted = rows.expected.filter(pc.field("c") < 20000)
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == wanted
    assert calls == outcome.rows == wanted.num_rows
