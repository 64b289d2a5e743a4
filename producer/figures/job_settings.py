"""What a job was made with, for reports and pages: its settings and its command. No secrets."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from config.secrets import mask
from producer.request.command_line import COMMAND_LABEL
from producer.request.fingerprint import FINGERPRINT_LABEL
from producer.text import bytes_text, count_text
from ringhaul import __version__
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.plain_text import as_line
from ringhaul.records.job import Input, LoadJob
from ringhaul.scan.job import ReadJob
from ringhaul.storage.access import mask_url

if TYPE_CHECKING:
    from ringhaul.output.job import Output
    from tasks.kinds import Job

#: How much of a setting is shown: a WHERE clause or a list of transforms can be long.
CHARS_MAX = 400
_PACKAGES = ("celery", "redis", "cassandra-driver", "pyarrow")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A name and what it was set to, as text."""

    name: str
    value: str


def job_settings(status: JobStatus, job: Job, limit: ErrorLimit) -> tuple[Setting, ...]:
    """Return the settings that decide what a job does and how fast."""
    rows = [*_of_kind(job), *_shared(status, job, limit)]
    return tuple(
        Setting(name=name, value=as_line(mask(value))[:CHARS_MAX]) for name, value in rows if value
    )


def job_command(status: JobStatus) -> str:
    """Return the command that made the job. If an older version made it, return the options in its
    fingerprint; empty if there is none."""
    if command := status.labels.get(COMMAND_LABEL):
        return as_line(mask(command))
    try:
        options = json.loads(status.labels.get(FINGERPRINT_LABEL) or "{}")
    except ValueError:
        return ""
    if not isinstance(options, dict):
        return ""
    words = [f"{name} {value}" for name, value in options.items()]
    kind = status.labels.get("kind", "load")
    return as_line(mask(" ".join(["ringhaul", kind, *words]))) if words else ""


def environment(server: str) -> tuple[Setting, ...]:
    """Return the versions in this process, which made the report. `server`: the ledger server's
    name and version."""
    found = [("ringhaul", __version__), ("python", platform.python_version())]
    for package in _PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    found += [("broker", server), ("system", f"{platform.system()} {platform.machine()}")]
    return tuple(Setting(name=name, value=as_line(value)) for name, value in found if value)


def _of_kind(job: Job) -> Iterator[tuple[str, str]]:
    if isinstance(job, LoadJob):
        yield from _of_load(job)
        return
    if isinstance(job, ReadJob):
        yield "table", job.table.name
        yield "select", job.sql
        yield "transforms", " ".join(job.transforms)
        yield "unreadable ranges", "are skipped" if job.skip_failed else "fail the job"
    else:
        yield "table", job.label
        yield "statement", job.statement
        yield "values", " ".join(job.spans) or _sources(job.values)
        yield "may run twice", "yes" if job.repeatable else "no"
    yield "output", _output(job.output, streams=job.streams)


def _of_load(job: LoadJob) -> Iterator[tuple[str, str]]:
    yield "table", job.table.name
    yield "sources", _sources(job)
    yield "unit size", bytes_text(job.unit_bytes)
    yield "where", job.where
    yield "transforms", " ".join(job.transforms)
    if job.kind is JobKind.LOAD:
        yield "strategy", job.strategy
        yield "nulls", job.nulls
        yield "ttl", f"{job.ttl_s:,} s" if job.ttl_s else ""


def _shared(status: JobStatus, job: Job, limit: ErrorLimit) -> Iterator[tuple[str, str]]:
    yield "cluster", job.cluster_name
    yield "consistency", job.consistency
    if job.takes_error_limit:
        yield "rejects allowed", _limit(limit)
    yield "priority", status.priority
    yield "limits", str(status.pace)
    yield "queue", status.labels.get("queue", "")


def _limit(limit: ErrorLimit) -> str:
    if limit.records_max >= 0:
        return count_text(limit.records_max, "record")
    if limit.per_million_max >= 0:
        return f"{limit.per_million_max / 10_000:g} % of the records"
    return "any number"


def _sources(job: Input) -> str:
    count = count_text(len(job.sources), "file")
    formats = " and ".join(sorted({source.format for source in job.sources}))
    return f"{count}, {bytes_text(job.total_bytes)}, {formats}"


def _output(output: Output | None, *, streams: bool) -> str:
    if output is None:
        return ""
    return "standard output" if streams else f"{mask_url(output.place)}, {output.format.kind}"
