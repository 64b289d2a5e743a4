"""Fold the partial results of all units into the result of a count or query.

They are in the ledger, or in files that it names, so the result can be computed again at any time,
by any process, until the job's files are removed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ringhaul.cql.types import CqlType
from ringhaul.ledger.reading import Reader
from ringhaul.query.aggregate import Aggregation
from ringhaul.query.results import numeric
from ringhaul.scan.job import ReadJob
from ringhaul.scan.spill import unspill

_TEXT, _BIGINT = CqlType("text"), CqlType("bigint")


def fold_job(ledger: Reader, job_id: str, job: ReadJob) -> pa.Table:
    """Return the result of a count or a query, with columns of `result_types`."""
    extras = (extra for _, extra in ledger.extras(job_id))
    if job.ring:
        return _fold_ranges(job, extras)
    aggregation = Aggregation(job.select, exact_keys=job.exact_keys)
    whole = aggregation.partial()
    for extra in extras:
        whole.merge(aggregation.unpack(unspill(extra, job.spill)))
    return numeric(whole.finish(), result_types(job))


def result_types(job: ReadJob) -> tuple[CqlType, ...]:
    """Return the types of the result's columns.

    Varint and decimal have the Arrow forms of `numeric`. A decimal in a partition key is text: as
    numbers, all would get the same scale.
    """
    if job.ring:
        return (_TEXT, _BIGINT) if job.by_host else (_BIGINT, _BIGINT, _BIGINT)
    types = job.select.types
    return tuple(_TEXT if job.exact_keys and t.name == "decimal" else t for t in types)


def _fold_ranges(job: ReadJob, extras: Iterator[bytes]) -> pa.Table:
    """Return a table of row counts by host, or by token range.

    A range excludes its start and includes its end; the first range wraps around.
    """
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
