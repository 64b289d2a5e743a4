"""One unit of a read with attempts that die on demand, and its results."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.tables import find_table
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.cql.types import CqlType
from ringhaul.dataplane.pacing import UNTHROTTLED, Throttle
from ringhaul.formats.write import OutputFormat
from ringhaul.output.job import Output
from ringhaul.output.manifest import check_parts
from ringhaul.output.parts import PartInfo
from ringhaul.scan.finish import unload_parts
from ringhaul.scan.job import ReadJob
from ringhaul.scan.options import ScanOptions, ScanTarget
from ringhaul.scan.pages import PageReader
from ringhaul.scan.ranges import MAX_TOKEN, MIN_TOKEN, TokenRange
from ringhaul.scan.row_limit import Reserve
from ringhaul.scan.run import ReadHooks, ReadOutcome, run_read_unit
from ringhaul.scan.sinks import UnitOf
from ringhaul.scan.statement import scan_statement
from ringhaul.transform.chain import Function, Transform
from tests.integration.scan.rows import WIDE, Rows

JOB = "ul-7f3a9c"
NEVER = float("inf")
CSV = OutputFormat()
MANY_GROUPS = "SELECT p, c, count(*) AS n FROM {table} GROUP BY p, c"
HALVES = [TokenRange(MIN_TOKEN, 0), TokenRange(0, MAX_TOKEN)]


def token_of(key: int) -> int:
    return int(murmur3_tokens(pa.array([key.to_bytes(8, "big", signed=True)], pa.binary()))[0])


#: Only the wide partition.
WIDE_RANGE = TokenRange(token_of(WIDE) - 1, token_of(WIDE))


class Died(Exception):
    """Raised to end an attempt of a test."""


@dataclass
class Unit:
    """A unit with attempts that die on demand; keeps the cursor as the ledger does."""

    session: Session
    job: ReadJob
    ranges: list[TokenRange]
    number: int = 5
    page_bytes: int = 100_000
    in_flight: int = 2
    transforms: tuple[Transform, ...] = ()
    reserve: Reserve | None = None
    cursor: bytes | None = None
    attempts: int = 0
    #: Rows that the last attempt's ticks reported.
    seen: list[int] = field(default_factory=list)
    seen_rejected: list[int] = field(default_factory=list)

    def attempt(
        self,
        dies_at: float = NEVER,
        *,
        checkpoint_s: float = 0.0,
        on_checkpoint: Callable[[], None] = lambda: None,
        of: type[Exception] = Died,
        throttle: Throttle = UNTHROTTLED,
        dies: Callable[[], bool] = lambda: False,
        rejects_max: int = -1,
    ) -> ReadOutcome:
        """Run the unit from its cursor; raise `of` after this many rows, or when `dies()` is true.

        A checkpoint follows every batch, so that only the batch in which it dies is lost.
        """
        self.attempts += 1
        self.seen, self.seen_rejected = [], []

        def tick(rows: int, rejected: int, bytes_read: int) -> None:
            self.seen.append(rows)
            self.seen_rejected.append(rejected)
            if rows >= dies_at or dies():
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
                in_order=self.job.token_order,
            ),
            ReadHooks(
                tick=tick,
                checkpoint=keep,
                throttle=throttle,
                rejects_max=rejects_max,
                reserve=self.reserve,
                checkpoint_s=checkpoint_s,
            ),
            self.cursor,
            self.transforms,
        )

    def die(self, at: float, **options: Any) -> None:
        with pytest.raises(Died):
            self.attempt(at, **options)

    @property
    def counted(self) -> tuple[int, int, int]:
        """Return (rows, rows read, bytes read) up to the cursor."""
        assert self.cursor is not None
        _, rows, rows_read, bytes_read, *_ = json.loads(self.cursor.partition(b"\n")[0])
        return rows, rows_read, bytes_read

    @property
    def saved(self) -> bytes:
        """Return the sink's state at the cursor."""
        assert self.cursor is not None
        return self.cursor.partition(b"\n")[2]

    @property
    def scan_cursor(self) -> str:
        assert self.cursor is not None
        scan: str = json.loads(self.cursor.partition(b"\n")[0])[0]
        return scan

    def run_with_deaths(self, seed: int) -> ReadOutcome:
        """Run attempts that each die after random numbers of rows, and a last one to the end."""
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
    table = find_table(DriverView(session), rows.keyspace, rows.table)
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


def transform(unit: Unit, name: str, function: Function) -> None:
    """Let a function change the rows of an unload. Their columns and types stay."""
    unit.transforms = (Transform(name, function),)
    kinds = {"p": "bigint", "c": "int", "v": "text"}
    results = tuple((column, CqlType(kind)) for column, kind in kinds.items())
    unit.job = replace(unit.job, transforms=(name,), results=results)


def parts_of(outcome: ReadOutcome) -> list[PartInfo]:
    """Return the parts as the ledger gets them, and assert that the outcome has the same."""
    parts = unload_parts(outcome.extra)
    assert parts == outcome.parts
    return parts


def attempts_of(parts: list[PartInfo]) -> list[str]:
    """Return the attempts that wrote parts, in order, each once."""
    return list(dict.fromkeys(part.name.split(".")[0].rsplit("-", 1)[1] for part in parts))


def read_parts(folder: Path, parts: list[PartInfo]) -> pa.Table:
    """Return the rows of the part files in order, after checking their counts and checksums."""
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
