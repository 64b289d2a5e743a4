"""The end of a count or a query: the partial results of all units, each once, become one.

They are in the ledger, or in the files that it names, so that the result may be computed again at
any time, by anybody, until the job's files are removed.
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
    """The result of a count or a query, with columns of `result_types`."""
    extras = (extra for _, extra in ledger.extras(job_id))
    if job.ring:
        return _fold_ranges(job, extras)
    aggregation = Aggregation(job.select, exact_keys=job.exact_keys)
    whole = aggregation.partial()
    for extra in extras:
        whole.merge(aggregation.unpack(unspill(extra, job.spill)))
    return numeric(whole.finish(), result_types(job))


def result_types(job: ReadJob) -> tuple[CqlType, ...]:
    """Of the columns of the result; the Arrow forms of varint and decimal are those of `numeric`.

    A decimal that is a partition's key is text, as numbers would all get the scale of one.
    """
    if job.ring:
        return (_TEXT, _BIGINT) if job.by_host else (_BIGINT, _BIGINT, _BIGINT)
    types = job.select.types
    return tuple(_TEXT if job.exact_keys and t.name == "decimal" else t for t in types)


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
