"""One unit of a read on a real node, cut short and gone on with: every row is counted once."""

from __future__ import annotations

import json
import os
import random
import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from ringhaul.cluster.schema import find_table
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable, UnitPaused, UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.load.pacing import UNTHROTTLED, Throttle
from ringhaul.load.rejects import unpack_rejects
from ringhaul.query.aggregate import Aggregation
from ringhaul.read.cursor import unpack_cursor
from ringhaul.read.finish import unload_parts
from ringhaul.read.job import Output, ReadJob
from ringhaul.read.manifest import check_parts
from ringhaul.read.pages import PageReader
from ringhaul.read.parts import PartInfo, remove_orphans
from ringhaul.read.ranges import MAX_TOKEN, MIN_TOKEN, TokenRange
from ringhaul.read.ring import read_ring
from ringhaul.read.run import ReadHooks, ReadOutcome, run_read_unit
from ringhaul.read.scan import ScanOptions, ScanTarget
from ringhaul.read.sinks import Given, UnitOf
from ringhaul.read.spill import PartialTooLarge, unspill
from ringhaul.read.statement import scan_statement
from ringhaul.transform.chain import Transform
from tests.integration.read.rows import ROWS, WIDE, WIDE_ROWS, Rows, by_key
from tests.limits import files_up_to
from tests.throttles import Limited

JOB = "ul-7f3a9c"
NEVER = float("inf")
CSV = OutputFormat()
HALVES = [TokenRange(MIN_TOKEN, 0), TokenRange(0, MAX_TOKEN)]


def token_of(key: int) -> int:
    return int(murmur3_tokens(pa.array([key.to_bytes(8, "big", signed=True)], pa.binary()))[0])


#: The wide partition alone.
WIDE_RANGE = TokenRange(token_of(WIDE) - 1, token_of(WIDE))


class Died(Exception):
    """What ends an attempt of a test."""


@dataclass
class Unit:
    """A unit whose attempts die when they are told to; keeps the cursor as the ledger does."""

    session: Session
    job: ReadJob
    ranges: list[TokenRange]
    number: int = 5
    page_bytes: int = 100_000
    in_flight: int = 2
    transforms: tuple[Transform, ...] = ()
    cursor: bytes | None = None
    attempts: int = 0
    #: Rows that ticks told, of the last attempt.
    seen: list[int] = field(default_factory=list)

    def attempt(
        self,
        dies_at: float = NEVER,
        *,
        checkpoint_s: float = 0.0,
        on_checkpoint: Callable[[], None] = lambda: None,
        of: type[Exception] = Died,
        throttle: Throttle = UNTHROTTLED,
    ) -> ReadOutcome:
        """Run the unit from its cursor; it dies of `of` once this many rows were wanted.

        Every batch is followed by a checkpoint, so that the one it dies of is lost.
        """
        self.attempts += 1
        self.seen = []

        def tick(rows: int, rejected: int, bytes_read: int) -> None:
            self.seen.append(rows)
            if rows >= dies_at:
                raise of

        def keep(cursor: bytes) -> None:
            self.cursor = cursor
            on_checkpoint()

        return run_read_unit(
            UnitOf(JOB, self.number, self.ranges),
            self.job,
            ScanTarget(
                PageReader(self.session),
                self.session.prepare(scan_statement(self.job.select)),
                self.job.table.keyspace,
            ),
            ScanOptions(
                consistency=ConsistencyLevel.LOCAL_ONE,
                page_bytes=self.page_bytes,
                in_flight=self.in_flight,
            ),
            ReadHooks(tick=tick, checkpoint=keep, throttle=throttle, checkpoint_s=checkpoint_s),
            self.cursor,
            self.transforms,
        )

    def die(self, at: float, **options: Any) -> None:
        with pytest.raises(Died):
            self.attempt(at, **options)

    @property
    def counted(self) -> tuple[int, int, int]:
        """(rows, rows read, bytes read) up to the cursor."""
        assert self.cursor is not None
        _, rows, rows_read, bytes_read = json.loads(self.cursor.partition(b"\n")[0])
        return rows, rows_read, bytes_read

    @property
    def saved(self) -> bytes:
        """What the sink had at the cursor."""
        assert self.cursor is not None
        return self.cursor.partition(b"\n")[2]

    @property
    def scan_cursor(self) -> str:
        assert self.cursor is not None
        scan: str = json.loads(self.cursor.partition(b"\n")[0])[0]
        return scan

    def run_with_deaths(self, seed: int) -> ReadOutcome:
        """Attempts that die after so many rows of their own, and the last."""
        draw = random.Random(seed)
        self.die(10_000)
        for _ in range(5):
            with suppress(Died):
                return self.attempt(self.counted[0] + draw.choice([1, 5000, 20_000, 60_000]))
        return self.attempt()


def make_unit(
    session: Session, rows: Rows, kind: str, sql: str, ranges: list[TokenRange], **options: Any
) -> Unit:
    known = session.cluster.metadata.keyspaces.get(rows.keyspace)
    if known is None or rows.table not in known.tables:
        session.cluster.refresh_table_metadata(rows.keyspace, rows.table)
    table = find_table(session.cluster.metadata, rows.keyspace, rows.table)
    job = ReadJob(
        kind=kind,
        cluster_name="test",
        table=table,
        sql=sql.format(table=f"{rows.keyspace}.{rows.table}"),
        **options,
    )
    return Unit(session, job, ranges)


def unload(
    session: Session,
    rows: Rows,
    folder: Path,
    ranges: list[TokenRange] = HALVES,
    *,
    fmt: OutputFormat = CSV,
    where: str = "",
    **bounds: int,
) -> Unit:
    output = Output(url=str(folder), format=fmt, **bounds)
    sql = f"SELECT p, c, v FROM {{table}}{where}"
    return make_unit(session, rows, "unload", sql, ranges, output=output)


def parts_of(outcome: ReadOutcome) -> list[PartInfo]:
    """The parts as the ledger gets them; those of the outcome are the same."""
    parts = unload_parts(outcome.extra)
    assert parts == outcome.parts
    return parts


def attempts_of(parts: list[PartInfo]) -> list[str]:
    """The attempts that wrote parts, in order, each once."""
    return list(dict.fromkeys(part.name.split(".")[0].rsplit("-", 1)[1] for part in parts))


def read_parts(folder: Path, parts: list[PartInfo]) -> pa.Table:
    """The rows of part files one after the other; checks their counts and checksums."""
    assert check_parts(str(folder), tuple(parts), contents=True) == []
    schema = pa.schema([("p", pa.int64()), ("c", pa.int32()), ("v", pa.string())])
    tables = []
    for part in parts:
        path = folder / part.name
        if path.suffix == ".parquet":
            table = pq.read_table(path).cast(schema)
        else:
            options = pa.csv.ConvertOptions(
                column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            table = pa.csv.read_csv(path, convert_options=options)
        assert table.num_rows == part.rows > 0
        tables.append(table)
    return pa.concat_tables(tables)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# -- pauses and limits


def test_a_pause_keeps_what_was_written(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)
    # Given a unit that never comes to its checkpoint
    with pytest.raises(UnitPaused):
        unit.attempt(10_000, checkpoint_s=NEVER, of=UnitPaused)
    # When it is paused, then it keeps all that it has
    kept = unit.counted[0]
    assert kept == unit.seen[-1] >= 10_000
    # And paused again before there is anything new it keeps that
    cursor = unit.cursor
    with pytest.raises(UnitPaused):
        unit.attempt(kept, checkpoint_s=NEVER, of=UnitPaused)
    assert unit.cursor == cursor
    # And goes on from there
    outcome = unit.attempt(checkpoint_s=NEVER)
    assert unit.seen[0] == kept
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == rows.expected
    assert len(attempts_of(outcome.parts)) == 2
    assert names(tmp_path) == sorted(part.name for part in outcome.parts)


def test_limits_are_of_rows_and_bytes_that_are_read(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    throttle = Limited(rows_at_once=2000)
    unit = unload(cassandra_session, rows, tmp_path, where=" WHERE c >= 1")
    outcome = unit.attempt(throttle=throttle)
    assert outcome.rows < outcome.rows_read == throttle.rows
    assert outcome.bytes_read == throttle.bytes
    assert max(count for count, _ in throttle.paid) <= 2000


# -- unload


@pytest.mark.parametrize("fmt", [CSV, OutputFormat(kind="parquet")], ids=lambda fmt: fmt.kind)
@pytest.mark.parametrize("seed", range(2))
def test_parts_of_all_attempts_hold_each_row_once(
    cassandra_session: Session, rows: Rows, tmp_path: Path, fmt: OutputFormat, seed: int
) -> None:
    unit = unload(cassandra_session, rows, tmp_path, fmt=fmt)
    # When attempts die, and each goes on from the last checkpoint
    outcome = unit.run_with_deaths(seed)
    # Then the parts of all of them have every row once
    parts = parts_of(outcome)
    assert by_key(read_parts(tmp_path, parts)) == rows.expected
    # And more than one attempt wrote them, whose numbers go on
    assert 1 < len(attempts_of(parts)) <= unit.attempts
    assert [part.name[:18] for part in parts] == [f"part-000005-{n:06}" for n in range(len(parts))]
    assert {(part.token_after, part.token_to) for part in parts} == {(MIN_TOKEN, MAX_TOKEN)}
    # And the counts are those of one attempt that went through
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)
    assert outcome.bytes_read > ROWS * 12
    # And nothing is in the folder that does not count
    assert names(tmp_path) == sorted(part.name for part in parts)
    assert remove_orphans(str(tmp_path), JOB, {part.name for part in parts}) == []


def test_an_attempt_tells_on_from_where_it_goes_on(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)
    unit.die(60_000)
    kept = unit.counted
    assert 0 < kept[0] == kept[1] < 60_000
    unit.die(120_000)
    # Progress begins with the rows that are there, and only grows.
    assert unit.seen[0] == kept[0]
    assert unit.seen == sorted(unit.seen)
    assert unit.counted > kept
    bytes_before = unit.counted[2]
    outcome = unit.attempt()
    assert outcome.rows == ROWS
    assert outcome.bytes_read > bytes_before
    # Pages are of this attempt: the ones before were told of by nobody.
    assert outcome.pages == sum(outcome.latencies.values()) > 0


def test_rows_that_a_condition_drops_are_counted_apart(
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


def test_what_a_transform_drops_and_fails_on_is_counted_once_whatever_dies(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    # Given a function that leaves out two of three rows, and fails on two rows of all
    def thirds(batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = batch.column("c").to_pylist()
        for bad in (60_000, 150_001):
            if bad in numbers:
                raise ValueError(f"{bad} is bad")
        return batch.filter(pa.array([number % 3 == 0 for number in numbers], pa.bool_()))

    unit = unload(cassandra_session, rows, tmp_path)
    unit.transforms = (Transform("t:thirds", thirds),)
    kinds = {"p": "bigint", "c": "int", "v": "text"}
    results = tuple((name, CqlType(kind)) for name, kind in kinds.items())
    unit.job = replace(unit.job, transforms=("t:thirds",), results=results)

    # When attempts die and go on
    for dies_at in (5_000, 30_000, 60_000):
        unit.die(dies_at)
    outcome = unit.attempt()

    # Then rows, drops and rejects are those of all rows, each once
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


def test_in_the_middle_of_a_wide_partition(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path, [WIDE_RANGE])
    # When attempts die within the one partition that the unit is of
    kept = []
    for dies_at in (50_000, 90_000, 170_000):
        unit.die(dies_at)
        (rest,) = unpack_cursor(unit.scan_cursor)
        assert rest.range == WIDE_RANGE and rest.state is not None
        kept.append(unit.counted[1])
    assert kept == sorted(set(kept)) and kept[0] > 0
    # Then the last goes on there
    outcome = unit.attempt()
    assert (outcome.rows, outcome.rows_read) == (WIDE_ROWS, WIDE_ROWS)
    parts = parts_of(outcome)
    assert len(attempts_of(parts)) == 4
    # And the rows are in the partition's order over the parts, as if nobody had died
    found = read_parts(tmp_path, parts)
    assert found["c"].to_pylist() == list(range(WIDE_ROWS))
    assert set(found["p"].unique().to_pylist()) == {WIDE}


def test_an_attempt_that_dies_after_the_last_row(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """All was kept, and was not committed: the next attempt has nothing to read."""
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


def test_without_a_cursor_an_attempt_begins_again(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)
    # Given an attempt that kept parts for the next
    unit.die(100_000)
    orphans = names(tmp_path)
    assert orphans and not any(name.startswith(".") for name in orphans)
    # When its cursor is lost: Redis may lose its last second
    unit.cursor = None
    outcome = unit.attempt(checkpoint_s=NEVER)
    # Then the next reads everything, and counts nothing twice
    parts = parts_of(outcome)
    assert unit.seen[0] == 0
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)
    assert by_key(read_parts(tmp_path, parts)) == rows.expected
    # And the parts of the first are removed in the end, and no others
    winners = {part.name for part in parts}
    assert names(tmp_path) == sorted({*orphans, *winners})
    assert remove_orphans(str(tmp_path), JOB, winners) == sorted(orphans)
    assert names(tmp_path) == sorted(winners)


def test_an_attempt_that_kept_nothing_leaves_nothing(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """Its parts, whole ones too, are named nowhere."""
    unit = unload(cassandra_session, rows, tmp_path, rows_max=2000)
    unit.die(50_000, checkpoint_s=NEVER)
    assert names(tmp_path) == []


def test_an_attempt_leaves_what_it_kept_and_no_more(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """Another attempt went on from its cursor: the parts it names are the other's now."""
    unit = unload(cassandra_session, rows, tmp_path, rows_max=2000)
    other: list[ReadOutcome] = []

    def overtaken() -> None:
        # Another attempt, begun from this cursor, is done before this one goes on.
        if not other and unit.counted[0] > 30_000:
            kept = unit.cursor
            other.append(unit.attempt(checkpoint_s=NEVER))
            unit.cursor = kept

    unit.die(60_000, on_checkpoint=overtaken)
    parts = parts_of(other[0])
    assert len(attempts_of(parts)) == 2
    assert by_key(read_parts(tmp_path, parts)) == rows.expected


# -- query and count


@pytest.mark.parametrize("seed", range(2))
def test_a_query_s_partials_count_each_row_once(
    cassandra_session: Session, rows: Rows, seed: int
) -> None:
    sql = (
        "SELECT p, count(*) AS n, count(v) AS of_v, sum(c) AS s, min(v) AS low, max(c) AS high "
        "FROM {table} WHERE c >= 2 GROUP BY p"
    )
    units = [make_unit(cassandra_session, rows, "query", sql, [half]) for half in HALVES]
    aggregation = Aggregation(units[0].job.select)
    whole = aggregation.partial()
    counts = [0, 0]
    for unit in units:
        outcome = unit.run_with_deaths(seed)
        assert unit.attempts > 1 and outcome.parts == []
        counts = [counts[0] + outcome.rows, counts[1] + outcome.rows_read]
        whole.merge(aggregation.unpack(unspill(outcome.extra, "")))
    wanted = rows.expected.filter(pc.field("c") >= 2)
    assert counts == [wanted.num_rows, ROWS]
    expected = wanted.group_by("p").aggregate(
        [([], "count_all"), ("v", "count"), ("c", "sum"), ("v", "min"), ("c", "max")]
    )
    found = whole.finish()
    # Sums are exact, and come as the text of a varint.
    expected = expected.rename_columns(["p", "n", "of_v", "s", "low", "high"]).cast(found.schema)
    assert found.sort_by("p") == expected.sort_by("p")


def test_a_query_in_the_middle_of_a_wide_partition(cassandra_session: Session, rows: Rows) -> None:
    sql = "SELECT count(*) AS n, sum(c) AS s FROM {table}"
    unit = make_unit(cassandra_session, rows, "query", sql, [WIDE_RANGE])
    unit.die(50_000)
    unit.die(150_000)
    outcome = unit.attempt()
    assert (outcome.rows, outcome.rows_read) == (WIDE_ROWS, WIDE_ROWS)
    partial = Aggregation(unit.job.select).unpack(unspill(outcome.extra, ""))
    assert partial.finish().to_pylist() == [{"n": WIDE_ROWS, "s": str(sum(range(WIDE_ROWS)))}]


def test_a_count_by_range_counts_each_row_once(cassandra_session: Session, rows: Rows) -> None:
    ring = tuple(
        (entry.token, "127.0.0.1") for entry in read_ring(cassandra_session, rows.keyspace)
    )
    sql = "SELECT token(p) FROM {table}"
    unit = make_unit(cassandra_session, rows, "count", sql, HALVES, ring=ring)
    outcome = unit.run_with_deaths(0)
    assert unit.attempts > 1
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)
    keys = rows.expected["p"].to_pylist()
    tokens = {key: token_of(key) for key in set(keys)}
    expected = [0] * len(ring)
    ends = [token for token, _ in ring]
    for key in keys:
        place = next((i for i, end in enumerate(ends) if tokens[key] <= end), 0)
        expected[place] += 1
    assert pa.array(memoryview(outcome.extra).cast("q").tolist()).to_pylist() == expected


# -- partial results that are too large for the ledger

MANY_GROUPS = "SELECT p, c, count(*) AS n FROM {table} GROUP BY p, c"


def test_a_large_partial_goes_to_a_file(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "spill"
    unit = make_unit(
        cassandra_session,
        rows,
        "query",
        MANY_GROUPS,
        [WIDE_RANGE],
        partial_bytes_max=2000,
        spill=str(folder),
    )
    outcome = unit.attempt()
    # Then the ledger gets its name only, and no cursor held it either
    assert len(outcome.extra) < 100
    assert unit.cursor is None or len(unit.saved) <= 2000
    (name,) = names(folder)
    assert outcome.extra == b"\x01" + name.encode()
    # And the file has it all
    partial = Aggregation(unit.job.select).unpack(unspill(outcome.extra, str(folder)))
    assert partial.groups_count == WIDE_ROWS
    # And a second attempt has a file of its own, which goes when it does not count
    late = unit.attempt(checkpoint_s=NEVER)
    assert len(names(folder)) == 2
    late.undo()
    assert names(folder) == [name]


def test_a_checkpoint_that_is_too_large_is_left_out(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """The ledger's memory is bounded: the next attempt goes on from the last that was kept."""
    unit = make_unit(
        cassandra_session,
        rows,
        "query",
        MANY_GROUPS,
        [WIDE_RANGE],
        partial_bytes_max=30_000,
        spill=str(tmp_path),
    )
    unit.die(150_000)
    assert 0 < len(unit.saved) <= 30_000
    assert unit.counted[0] < 100_000
    outcome = unit.attempt()
    assert (outcome.rows, outcome.rows_read) == (WIDE_ROWS, WIDE_ROWS)
    partial = Aggregation(unit.job.select).unpack(unspill(outcome.extra, str(tmp_path)))
    assert partial.groups_count == WIDE_ROWS


def test_a_large_partial_without_a_folder_is_refused(
    cassandra_session: Session, rows: Rows
) -> None:
    unit = make_unit(
        cassandra_session, rows, "query", MANY_GROUPS, [WIDE_RANGE], partial_bytes_max=2000
    )
    with pytest.raises(PartialTooLarge, match=r"more than 2,000: group by fewer distinct values"):
        unit.attempt()


# -- a folder that takes no more


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_full_disk_ends_the_unit_and_leaves_nothing(
    cassandra_session: Session,
    rows: Rows,
    tmp_path: Path,
    kind: str,
) -> None:
    fmt = OutputFormat(kind=kind, compression="none")
    unit = unload(cassandra_session, rows, tmp_path / "out", fmt=fmt)
    told = r"out: a part is larger than a file may be there"
    with pytest.raises(OutputUnusable, match=told), files_up_to(200_000):
        unit.attempt(checkpoint_s=NEVER)
    assert names(tmp_path / "out") == []


def test_a_disk_that_becomes_full_leaves_what_was_kept(
    cassandra_session: Session,
    rows: Rows,
    tmp_path: Path,
) -> None:
    unit = unload(cassandra_session, rows, tmp_path)

    def fill() -> None:
        if unit.counted[0] > 40_000:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))

    # When the disk becomes full after some checkpoints
    told = "larger than a file may be"
    with pytest.raises(OutputUnusable, match=told), files_up_to(resource.RLIM_INFINITY):
        unit.attempt(on_checkpoint=fill)
    # Then the folder holds what the cursor names
    assert names(tmp_path) == sorted(part["name"] for part in json.loads(unit.saved))
    # And with room again the next attempt goes on there
    outcome = unit.attempt()
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == rows.expected
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)


def test_a_full_disk_and_a_large_partial(
    cassandra_session: Session,
    rows: Rows,
    tmp_path: Path,
) -> None:
    unit = make_unit(
        cassandra_session,
        rows,
        "query",
        MANY_GROUPS,
        [WIDE_RANGE],
        partial_bytes_max=2000,
        spill=str(tmp_path),
    )
    told = r"cannot be kept here: File too large; make room"
    with pytest.raises(OutputUnusable, match=told), files_up_to(5000):
        unit.attempt(checkpoint_s=NEVER)
    assert names(tmp_path) == []


def test_a_folder_that_is_a_file(cassandra_session: Session, rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    unit = unload(cassandra_session, rows, tmp_path / "out")
    with pytest.raises((OutputUnusable, UsageError), match="is no folder that can be written"):
        unit.attempt()
    assert (tmp_path / "out").read_text() == "precious"
