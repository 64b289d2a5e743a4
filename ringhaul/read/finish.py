"""The end of a read job: the manifest of an unload, the folded result of a count or a query.

Both come from what committed units left in the ledger, each unit once, so that they may be
computed again at any time, by anybody, with the same result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from ringhaul.ledger.reading import Reader
from ringhaul.query.aggregate import Aggregation
from ringhaul.query.scope import Fetch
from ringhaul.read.job import ReadJob
from ringhaul.read.manifest import Manifest, write_manifest
from ringhaul.read.parts import PartInfo, remove_orphans
from ringhaul.read.spill import unspill


def publish_manifest(ledger: Reader, job_id: str) -> Manifest:
    """Write the manifest of an unload that is complete, and remove what attempts left that did
    not count. Repeating it writes the same."""
    job = ReadJob.from_json(json.loads(ledger.job_spec(job_id)))
    assert job.output is not None
    parts = list(job_parts(ledger, job_id))
    manifest = _manifest(job_id, job, parts, ledger.status(job_id).finished_ms or 0)
    write_manifest(job.output.url, manifest)
    remove_orphans(job.output.url, job_id, {part.name for part in parts})
    return manifest


def _manifest(job_id: str, job: ReadJob, parts: list[PartInfo], finished_ms: int) -> Manifest:
    assert job.output is not None
    return Manifest(
        job=job_id,
        keyspace=job.table.keyspace,
        table=job.table.table,
        statement=job.sql,
        columns=tuple(
            (item.name, _type_text(job, item.scalar.column)) for item in job.select.items
        ),
        format=job.output.format,
        created=datetime.fromtimestamp(finished_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        parts=tuple(parts),
    )


def _type_text(job: ReadJob, column: Fetch | None) -> str:
    """The CQL type as the schema has it, or of what the server computed."""
    assert column is not None
    return job.table.type_of(column.name) if column.is_column else column.type.name


def job_parts(ledger: Reader, job_id: str) -> Iterator[PartInfo]:
    """The parts of the committed units, in the order of units, which is that of tokens."""
    for _, extra in ledger.extras(job_id):
        for part in json.loads(extra):
            yield PartInfo.from_json(part)


def fold_job(ledger: Reader, job_id: str) -> pa.Table:
    """The result of a count or a query: the partial results of all units, each once."""
    job = ReadJob.from_json(json.loads(ledger.job_spec(job_id)))
    extras = (unspill(extra, job.spill) for _, extra in ledger.extras(job_id))
    if job.ring:
        return _fold_ranges(job, extras)
    aggregation = Aggregation(job.select)
    whole = aggregation.partial()
    for extra in extras:
        whole.merge(aggregation.unpack(extra))
    return whole.finish()


def _fold_ranges(job: ReadJob, extras: Iterator[bytes]) -> pa.Table:
    """Rows by token range: start (exclusive), end (inclusive), count; the first goes around."""
    ends = np.array(job.ring, np.int64)
    counts = np.zeros(len(ends), np.int64)
    for extra in extras:
        counts += np.frombuffer(extra, np.int64)
    return pa.table({"start_token": np.roll(ends, 1), "end_token": ends, "count": counts})
