"""One unit of an unload on a real node, interrupted and continued: each row is in a part once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from cassandra.cluster import Session

from ringhaul.errors import UnitPaused
from ringhaul.formats.write import OutputFormat
from ringhaul.output.parts import remove_orphans
from ringhaul.scan.cursor import unpack_cursor
from ringhaul.scan.ranges import MAX_TOKEN, MIN_TOKEN
from ringhaul.scan.run import ReadOutcome
from tests.integration.scan.rows import ROWS, WIDE, WIDE_ROWS, Rows, by_key
from tests.integration.scan.units import (
    CSV,
    JOB,
    NEVER,
    WIDE_RANGE,
    attempts_of,
    names,
    parts_of,
    read_parts,
    unload,
)
from tests.throttles import Limited


def test_a_pause_keeps_the_written_rows(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)
    # Given a unit that never reaches its checkpoint
    with pytest.raises(UnitPaused):
        unit.attempt(10_000, checkpoint_s=NEVER, of=UnitPaused)
    # When it is paused, then it keeps all rows so far
    kept = unit.counted[0]
    assert kept == unit.seen[-1] >= 10_000
    # And when it is paused again before any new row, then it still has them
    cursor = unit.cursor
    with pytest.raises(UnitPaused):
        unit.attempt(kept, checkpoint_s=NEVER, of=UnitPaused)
    assert unit.cursor == cursor
    # And it continues from there
    outcome = unit.attempt(checkpoint_s=NEVER)
    assert unit.seen[0] == kept
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == rows.expected
    assert len(attempts_of(outcome.parts)) == 2
    assert names(tmp_path) == sorted(part.name for part in outcome.parts)


def test_limits_apply_to_rows_and_bytes_read(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    throttle = Limited(rows_at_once=2000)
    unit = unload(cassandra_session, rows, tmp_path, where=" WHERE c >= 1")
    outcome = unit.attempt(throttle=throttle)
    assert outcome.rows < outcome.rows_read == throttle.rows
    assert outcome.bytes_read == throttle.bytes
    assert max(count for count, _ in throttle.paid) <= 2000


@pytest.mark.parametrize("fmt", [CSV, OutputFormat(kind="parquet")], ids=lambda fmt: fmt.kind)
@pytest.mark.parametrize("seed", range(2))
def test_parts_of_all_attempts_hold_each_row_once(
    cassandra_session: Session, rows: Rows, tmp_path: Path, fmt: OutputFormat, seed: int
) -> None:
    unit = unload(cassandra_session, rows, tmp_path, fmt=fmt)
    # When attempts die, and each continues from the last checkpoint
    outcome = unit.run_with_deaths(seed)
    # Then the parts of all attempts have every row once
    parts = parts_of(outcome)
    assert by_key(read_parts(tmp_path, parts)) == rows.expected
    # And more than one attempt wrote them, with consecutive numbers
    assert 1 < len(attempts_of(parts)) <= unit.attempts
    assert [part.name[:18] for part in parts] == [f"part-000005-{n:06}" for n in range(len(parts))]
    assert {(part.token_after, part.token_to) for part in parts} == {(MIN_TOKEN, MAX_TOKEN)}
    # And the counts are those of a single complete attempt
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)
    assert outcome.bytes_read > ROWS * 12
    # And the folder has no other files
    assert names(tmp_path) == sorted(part.name for part in parts)
    assert remove_orphans(str(tmp_path), JOB, {part.name for part in parts}) == []


def test_progress_continues_with_the_next_attempt(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)
    unit.die(60_000)
    kept = unit.counted
    assert 0 < kept[0] == kept[1] < 60_000
    unit.die(120_000)
    # Progress starts with the existing rows, and only grows.
    assert unit.seen[0] == kept[0]
    assert unit.seen == sorted(unit.seen)
    assert unit.counted > kept
    bytes_before = unit.counted[2]
    outcome = unit.attempt()
    assert outcome.rows == ROWS
    assert outcome.bytes_read > bytes_before
    # Pages are those of this attempt: no one reported the earlier ones.
    assert outcome.pages == sum(outcome.latencies.values()) > 0


def test_rows_that_a_condition_drops_are_counted_separately(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path, where=" WHERE v IS NOT NULL AND c >= 3")
    unit.die(1)
    unit.die(10_000)
    unit.die(25_000)
    outcome = unit.attempt()
    wanted = rows.expected.filter(pc.field("v").is_valid() & (pc.field("c") >= 3))
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == wanted
    assert (outcome.rows, outcome.rows_read) == (wanted.num_rows, ROWS)


def test_in_the_middle_of_a_wide_partition(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path, [WIDE_RANGE])
    # When attempts die within the unit's only partition
    kept = []
    for dies_at in (50_000, 90_000, 170_000):
        unit.die(dies_at)
        (rest,) = unpack_cursor(unit.scan_cursor)
        assert rest.range == WIDE_RANGE and rest.state is not None
        kept.append(unit.counted[1])
    assert kept == sorted(set(kept)) and kept[0] > 0
    # Then the last one continues there
    outcome = unit.attempt()
    assert (outcome.rows, outcome.rows_read) == (WIDE_ROWS, WIDE_ROWS)
    parts = parts_of(outcome)
    assert len(attempts_of(parts)) == 4
    # And the rows are in the partition's order over all parts, as without an interruption
    found = read_parts(tmp_path, parts)
    assert found["c"].to_pylist() == list(range(WIDE_ROWS))
    assert set(found["p"].unique().to_pylist()) == {WIDE}


def test_an_attempt_that_dies_after_the_last_row(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """Everything was checkpointed, but not committed: the next attempt has nothing to read."""
    unit = unload(cassandra_session, rows, tmp_path, [WIDE_RANGE])
    first = unit.attempt()
    assert unit.scan_cursor == ""
    again = unit.attempt()
    assert (again.rows, again.rows_read, again.bytes_read) == (
        first.rows,
        first.rows_read,
        first.bytes_read,
    )
    assert again.pages == 0
    assert parts_of(again) == parts_of(first)


def test_bounds_of_parts_hold_over_attempts(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path, rows_max=3000)
    unit.die(70_000)
    outcome = unit.attempt(checkpoint_s=NEVER)
    parts = parts_of(outcome)
    assert max(part.rows for part in parts) == 3000
    assert by_key(read_parts(tmp_path, parts)) == rows.expected
    assert names(tmp_path) == sorted(part.name for part in parts)


def test_without_a_cursor_an_attempt_starts_again(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)
    # Given an attempt that left parts for the next one
    unit.die(100_000)
    orphans = names(tmp_path)
    assert orphans and not any(name.startswith(".") for name in orphans)
    # When its cursor is lost, as Redis may lose its last second
    unit.cursor = None
    outcome = unit.attempt(checkpoint_s=NEVER)
    # Then the next one reads everything, and counts nothing twice
    parts = parts_of(outcome)
    assert unit.seen[0] == 0
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)
    assert by_key(read_parts(tmp_path, parts)) == rows.expected
    # And at the end, only the parts of the first one are removed
    winners = {part.name for part in parts}
    assert names(tmp_path) == sorted({*orphans, *winners})
    assert remove_orphans(str(tmp_path), JOB, winners) == sorted(orphans)
    assert names(tmp_path) == sorted(winners)


def test_an_attempt_without_a_checkpoint_leaves_no_parts(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """No cursor names its parts, not even complete ones."""
    unit = unload(cassandra_session, rows, tmp_path, rows_max=2000)
    unit.die(50_000, checkpoint_s=NEVER)
    assert names(tmp_path) == []


def test_an_attempt_leaves_only_its_checkpointed_parts(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """Another attempt continued from its cursor: the parts in it now belong to the other one."""
    unit = unload(cassandra_session, rows, tmp_path, rows_max=2000)
    other: list[ReadOutcome] = []

    def overtaken() -> None:
        # Another attempt, started from this cursor, is done before this one continues.
        if not other and unit.counted[0] > 30_000:
            kept = unit.cursor
            other.append(unit.attempt(checkpoint_s=NEVER))
            unit.cursor = kept

    unit.die(60_000, on_checkpoint=overtaken)
    parts = parts_of(other[0])
    assert len(attempts_of(parts)) == 2
    assert by_key(read_parts(tmp_path, parts)) == rows.expected
