"""Finish a lookup or an exec: the manifest, with the parts in the order of the input."""

from __future__ import annotations

import json

from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.reading import Reader
from ringhaul.ledger.states import JobState
from ringhaul.output.manifest import Manifest, write_manifest
from ringhaul.output.parts import remove_orphans
from ringhaul.scan.finish import check_seen, moment
from ringhaul.statements.job import StatementJob
from ringhaul.statements.result import split_extra


def publish_ask_manifest(ledger: Reader, status: JobStatus) -> None:
    """Write the manifest of a finished job, and remove files of attempts that do not count.

    Idempotent. An interrupted job gets no manifest.
    """
    if status.state not in (JobState.COMPLETE, JobState.PARTIAL):
        return
    job = StatementJob.from_json(json.loads(ledger.job_spec(status.job)))
    assert job.output is not None
    parts = [part for _, extra in ledger.extras(status.job) for part in split_extra(extra)[0]]
    check_seen(job.output.url, parts)
    manifest = Manifest(
        job=status.job,
        keyspace=job.table.keyspace if job.table else "",
        table=job.table.table if job.table else "",
        statement=job.statement,
        columns=tuple((name, str(kind)) for name, kind in job.result),
        format=job.output.format,
        created=moment(status.finished_ms or 0),
        parts=tuple(parts),
    )
    write_manifest(job.output.url, manifest)
    remove_orphans(job.output.url, status.job, {part.name for part in parts})
