"""Jobs that no worker ran: written into a ledger by its own functions, for benches and tests of
what shows them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import count

from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cql.text import TextFormat
from ringhaul.formats.dialect import CsvDialect
from ringhaul.ledger import keys
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.history import Sample
from ringhaul.ledger.ledger import Ledger
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rejects import Reject, RejectLog
from ringhaul.records.unit import LoadUnit, UnitResult
from ringhaul.sources.source import SourceFile

#: Of each unit.
UNIT_BYTES = 8 << 20
UNIT_ROWS = 120_000
_LEASE_MS = 600_000
_PATH = "/data/orders/orders.csv"
#: What is rejected unless the caller has something else.
REJECTED = Reject(
    file=_PATH,
    offset=0,
    length=20,
    line=1,
    stage="cast",
    column="total",
    reason='"341,79" is not a decimal number',
    data=b'EMEA,17,"341,79",late',
)


def make_load(
    ledger: Ledger,
    job: str,
    units: int,
    *,
    done: int | None = None,
    table: str = "orders",
    hosts: Sequence[str] = ("etl1", "etl2", "etl3"),
    processes: int = 4,
    rejects: int = 0,
    rejected: Reject = REJECTED,
) -> None:
    """Create a load, and commit its first `done` units (None: all, so that it ends).

    `processes`: of each host. `rejects`: of the whole job, all `rejected`, one each in its first
    units.
    """
    spec = _spec(table, units)
    about = {"kind": "load", "table": f"shop.{table}", "bytes_total": str(units * UNIT_BYTES)}
    command = f"ringhaul load {_PATH} -t shop.{table}"
    ledger.create(job, {**about, "command": command}, json.dumps(spec.to_json()))
    for first in range(0, units, keys.UNITS_PER_BUCKET):
        last = min(first + keys.UNITS_PER_BUCKET, units)
        ledger.add_units(job, 1, first, [_unit(unit) for unit in range(first, last)])
    ledger.seal(job, 1, units)
    wanted = units if done is None else done
    workers = [f"{host}:{4000 + number}" for host in hosts for number in range(processes)]
    handed_out = 0
    for unit in range(wanted):
        if unit >= handed_out:
            handed_out += len(ledger.issue(job, 1000).units)
        _run(ledger, job, unit, workers[unit % len(workers)], [rejected] if unit < rejects else [])


def age(ledger: Ledger, job: str, samples: int, *, every_ms: int = 10_000) -> None:
    """Date a job's start back so that it has `samples` samples: the ledger itself takes them
    by its clock. Rows and bytes grow to what the job has done."""
    status = ledger.status(job)
    now_ms, began_ms = status.now_ms, status.now_ms - samples * every_ms
    key = keys.job_key(job, "meta")
    ledger.caller.command("HSET", key, "created_ms", began_ms, "started_ms", began_ms)
    ledger.caller.command("ZADD", keys.JOBS, began_ms, job)
    pace = random.Random(job)
    speeds = [pace.uniform(0.8, 1.2) for _ in range(samples)]
    texts, done = [], 0.0
    for number, speed in enumerate(speeds, 1):
        done += speed / sum(speeds)
        sample = Sample(
            at_ms=now_ms - (samples - number) * every_ms,
            rows=int(done * status.totals["rows"]),
            bytes=int(done * status.totals["bytes"]),
            p50_ms=pace.uniform(3, 9),
            p99_ms=pace.uniform(20, 90),
            workers=12,
            hosts=3,
        )
        texts.append(sample.to_json())
    ledger.caller.command("DEL", keys.job_key(job, "samples"))
    ledger.caller.command("RPUSH", keys.job_key(job, "samples"), *texts)
    ledger.caller.command("EXPIRE", keys.job_key(job, "samples"), keys.JOB_TTL_S)


_tokens = count()


def _run(ledger: Ledger, job: str, unit: int, worker: str, rejects: Sequence[Reject]) -> None:
    token = f"t{next(_tokens)}@celery@{worker}"
    claimed = ledger.claim(job, unit, 1, token, _LEASE_MS)
    if not isinstance(claimed, Claimed):
        raise RuntimeError(f"unit {unit} of {job} cannot be claimed: {claimed}")
    result = UnitResult(
        source=0,
        records=UNIT_ROWS,
        dropped=0,
        filtered=0,
        written=UNIT_ROWS - len(rejects),
        rejected=len(rejects),
        input_bytes=UNIT_BYTES,
        retries=0,
        elapsed_ms=500 + unit % 97,
        cpu_ms=300,
        attempt=claimed.attempt,
        rss_bytes_max=150 << 20,
        window_min=256,
        window_max=512,
        window_shrunk=0,
        sstables=0,
        missed=0,
        worker=worker,
    )
    log = RejectLog()
    log.add(rejects)
    rows, rejected = UNIT_ROWS - len(rejects), len(rejects)
    totals = {"rows": rows, "rejected": rejected, "bytes": UNIT_BYTES, "retries": 0}
    ledger.commit(job, unit, 1, token, result.pack(), totals, {"40": 900, "60": 9}, log.blob())


def _unit(unit: int) -> str:
    rows = unit * UNIT_ROWS
    return LoadUnit(0, unit * UNIT_BYTES, UNIT_BYTES, rows, rows + 1, UNIT_ROWS).pack()


def _spec(table: str, units: int) -> LoadJob:
    columns = {"region": "text", "id": "int", "total": "decimal", "note": "text"}
    schema = TableSchema(
        keyspace="shop",
        table=table,
        columns=tuple(ColumnSchema(name=name, cql_type=kind) for name, kind in columns.items()),
        partition_key=("region",),
        clustering_key=("id",),
    )
    source = LoadSource(
        file=SourceFile(_PATH, units * UNIT_BYTES, False),
        fields=tuple(columns),
        mapping=tuple((name, name) for name in columns),
        start_offset_bytes=0,
        start_line=1,
    )
    return LoadJob(
        table=schema,
        cluster_name="prod",
        sources=(source,),
        dialect=CsvDialect(),
        text=TextFormat(),
        base_us=1_700_000_000_000_000,
        unit_bytes=UNIT_BYTES,
    )
