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

from ringhaul.errors import OutputUnusable
from ringhaul.ledger.reading import JobStatus, Reader
from ringhaul.ledger.states import JobState
from ringhaul.query.aggregate import Aggregation
from ringhaul.query.results import numeric
from ringhaul.query.scope import Fetch
from ringhaul.read.ask import AskJob
from ringhaul.read.ask_run import split_extra
from ringhaul.read.job import ReadJob
from ringhaul.read.manifest import Manifest, check_parts, write_manifest
from ringhaul.read.parts import PartInfo, remove_orphans
from ringhaul.read.spill import forget_spilled, unspill


def publish_manifest(ledger: Reader, job_id: str) -> Manifest:
    """Write the manifest of an unload that is complete, and remove what attempts left that did
    not count. Repeating it writes the same."""
    job = ReadJob.from_json(json.loads(ledger.job_spec(job_id)))
    assert job.output is not None
    parts = list(job_parts(ledger, job_id))
    _check_seen(job.output.url, parts)
    manifest = _manifest(job_id, job, parts, ledger.status(job_id).finished_ms or 0)
    write_manifest(job.output.url, manifest)
    remove_orphans(job.output.url, job_id, {part.name for part in parts})
    return manifest


def publish_ask_manifest(ledger: Reader, status: JobStatus) -> None:
    """The same of a lookup or an exec, whose parts are in the order of its input."""
    if status.state not in (JobState.COMPLETE, JobState.PARTIAL):
        return
    job = AskJob.from_json(json.loads(ledger.job_spec(status.job)))
    assert job.output is not None
    parts = [part for _, extra in ledger.extras(status.job) for part in split_extra(extra)[0]]
    _check_seen(job.output.url, parts)
    manifest = Manifest(
        job=status.job,
        keyspace=job.table.keyspace if job.table else "",
        table=job.table.table if job.table else "",
        statement=job.statement,
        columns=tuple((name, str(kind)) for name, kind in job.result),
        format=job.output.format,
        created=_moment(status.finished_ms or 0),
        parts=tuple(parts),
    )
    write_manifest(job.output.url, manifest)
    remove_orphans(job.output.url, status.job, {part.name for part in parts})


def _check_seen(url: str, parts: list[PartInfo]) -> None:
    """Raise `OutputUnusable` where the parts are not here: a worker wrote on a host of its own."""
    wrong = check_parts(url, tuple(parts))
    if wrong:
        raise OutputUnusable(
            f"{url}: {len(wrong):,} of {len(parts):,} files that workers wrote are not what they "
            f"were ({wrong[0]}). Is the folder the same on every host?"
        )


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


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
        created=_moment(finished_ms),
        parts=tuple(parts),
    )


def _type_text(job: ReadJob, column: Fetch | None) -> str:
    """The CQL type as the schema has it, or of what the server computed."""
    assert column is not None
    return job.table.type_of(column.name) if column.is_column else column.type.name


def job_parts(ledger: Reader, job_id: str) -> Iterator[PartInfo]:
    """The parts of the committed units, in the order of units, which is that of tokens."""
    for _, extra in ledger.extras(job_id):
        yield from unload_parts(extra)


def unload_parts(extra: bytes) -> list[PartInfo]:
    """The parts that a unit of an unload left in the ledger."""
    return [PartInfo.from_json(part) for part in json.loads(extra)]


def fold_job(ledger: Reader, job_id: str) -> pa.Table:
    """The result of a count or a query: the partial results of all units, each once."""
    job = ReadJob.from_json(json.loads(ledger.job_spec(job_id)))
    extras = (extra for _, extra in ledger.extras(job_id))
    if job.ring:
        return _fold_ranges(job, extras)
    aggregation = Aggregation(job.select)
    whole = aggregation.partial()
    for extra in extras:
        whole.merge(aggregation.unpack(unspill(extra, job.spill)))
    return numeric(whole.finish(), job.select.types)


def remove_spilled(ledger: Reader, job_id: str) -> None:
    """Remove the files of partial results that the ledger only names; the result is gone then."""
    job = ReadJob.from_json(json.loads(ledger.job_spec(job_id)))
    if job.ring:
        return
    for _, extra in ledger.extras(job_id):
        forget_spilled(extra, job.spill)


def _fold_ranges(job: ReadJob, extras: Iterator[bytes]) -> pa.Table:
    """Rows by token range: start (exclusive), end (inclusive), count; the first goes around. Or
    rows by host."""
    ends = np.array([token for token, _ in job.ring], np.int64)
    counts = np.zeros(len(ends), np.int64)
    for extra in extras:
        counts += np.frombuffer(extra, np.int64)
    if job.by_host:
        sums: dict[str, int] = {}
        for (_, host), count in zip(job.ring, counts.tolist(), strict=True):
            sums[host] = sums.get(host, 0) + count
        hosts = sorted(sums)
        return pa.table({"host": hosts, "count": [sums[host] for host in hosts]})
    return pa.table({"start_token": np.roll(ends, 1), "end_token": ends, "count": counts})
