"""Finish an unload: publish its manifest.

The manifest is built from what each committed unit left in the ledger, so it can be written again
at any time, by any process, with the same content.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from ringhaul.errors import OutputUnusable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.reading import Reader
from ringhaul.output.file_names import FileNames
from ringhaul.output.job import Output
from ringhaul.output.manifest import Manifest, Transformed, check_parts, write_manifest
from ringhaul.output.missing_ranges import MissingRange, join_missing
from ringhaul.output.one_file import file_exists, join_parts
from ringhaul.output.parts import PartInfo, remove_orphans
from ringhaul.output.unloadable_rows import Unloadable, join_unloadable
from ringhaul.scan.job import ReadJob
from ringhaul.scan.result import ReadResult
from ringhaul.storage.folders import open_folder


def publish_manifest(ledger: Reader, job_id: str) -> Manifest:
    """Write the manifest of a complete unload; remove files of attempts that do not count.

    Idempotent.
    """
    job = ReadJob.from_json(json.loads(ledger.job_spec(job_id)))
    output = job.output
    assert output is not None
    parts = list(job_parts(ledger, job_id))
    check_parts_counted(ledger, job_id, parts)
    if output.file:
        parts = [join_parts(output, parts, job.written_names, job.written_types)]
    else:
        parts = _named(job_id, job, output, parts)
        check_seen(output.url, parts)
    manifest = _manifest(job_id, job, parts, ledger.status(job_id).finished_ms or 0)
    if job.skip_failed:
        manifest = replace(manifest, missing=tuple(job_missing(ledger, job_id)))
    if job.transforms:
        manifest = replace(manifest, transform=_transformed(ledger, job_id, job))
    unloadable = tuple(job_unloadable(ledger, job_id))
    manifest = replace(manifest, unloadable=unloadable)
    if output.listed:
        write_manifest(output.manifest_folder, manifest)
    if not output.file:
        winners = {part.name for part in parts}
        remove_orphans(output.url, job_id, winners, deep=bool(output.partition_by))
    return manifest


def is_joined(ledger: Reader, job_id: str, job: ReadJob) -> bool:
    """Return whether a job's one file was made, and its parts are gone: nothing can be repeated.

    Raises `OutputUnusable` if the file is gone as well.
    """
    output = job.output
    if output is None or not output.file or not ledger.status(job_id).published:
        return False
    if open_folder(output.url).sizes():
        return False
    if not file_exists(output.file):
        raise OutputUnusable(
            f"{output.file} was written, and is gone since; its parts are, too: run the unload "
            "again"
        )
    return True


def _named(job_id: str, job: ReadJob, output: Output, parts: list[PartInfo]) -> list[PartInfo]:
    """Return the parts under the names that the user wants, which their files get."""
    if not output.names:
        return parts
    names = FileNames(output.names, output.format.suffix)
    table = job.table
    known = {"keyspace": table.keyspace, "table": table.table, "job": job_id}
    wanted = [
        posixpath.join(posixpath.dirname(part.name), names.name(number, **known))
        for number, part in enumerate(parts, start=1)
    ]
    folder = open_folder(output.url)
    there = folder.sizes(deep=bool(output.partition_by))
    for part, name in zip(parts, wanted, strict=True):
        if part.name in there:  # an earlier call may have renamed some
            folder.rename(part.name, name)
    return [replace(part, name=name) for part, name in zip(parts, wanted, strict=True)]


def check_parts_counted(ledger: Reader, job_id: str, parts: list[PartInfo]) -> None:
    """Raise `JobDamaged` if the ledger does not list exactly the parts that it counted."""
    counted = sum(ReadResult.unpack(packed).parts for _, packed in ledger.results(job_id))
    if counted != len(parts):
        raise JobDamaged(job_id, [f"{len(parts):,} of {counted:,} files are listed"])


def check_seen(url: str, parts: list[PartInfo]) -> None:
    """Raise `OutputUnusable` if parts are missing here: a worker wrote to a folder of its host."""
    wrong = check_parts(url, tuple(parts))
    if wrong:
        raise OutputUnusable(
            f"{url}: {len(wrong):,} of {len(parts):,} files that workers wrote are not what they "
            f"were ({wrong[0]}). Do all hosts share this folder?"
        )


def moment(ms: int) -> str:
    """Return a Redis time in ISO 8601."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _manifest(job_id: str, job: ReadJob, parts: list[PartInfo], finished_ms: int) -> Manifest:
    assert job.output is not None
    return Manifest(
        job=job_id,
        keyspace=job.table.keyspace,
        table=job.table.table,
        statement=job.sql,
        columns=tuple(one for one in job.columns if one[0] not in job.output.partition_by),
        partition_by=tuple(one for one in job.columns if one[0] in job.output.partition_by),
        format=job.output.format,
        created=moment(finished_ms),
        parts=tuple(parts),
    )


def _transformed(ledger: Reader, job_id: str, job: ReadJob) -> Transformed:
    results = [ReadResult.unpack(packed) for _, packed in ledger.results(job_id)]
    return Transformed(
        functions=job.transforms,
        rows_given=sum(result.rows_given for result in results),
        dropped=sum(result.dropped for result in results),
        rejected=sum(result.rejected for result in results),
    )


def job_missing(ledger: Reader, job_id: str) -> list[MissingRange]:
    """Return the ranges that the committed units skipped, in token order."""
    results = (ReadResult.unpack(packed) for _, packed in ledger.results(job_id))
    return join_missing(one for result in results for one in result.missing)


def job_unloadable(ledger: Reader, job_id: str) -> list[Unloadable]:
    """Return the rows that the committed units wrote and that cannot be loaded again."""
    results = (ReadResult.unpack(packed) for _, packed in ledger.results(job_id))
    return join_unloadable(one for result in results for one in result.unloadable)


def job_parts(ledger: Reader, job_id: str) -> Iterator[PartInfo]:
    """Yield the parts of the committed units, in order of units, which is token order."""
    for _, extra in ledger.extras(job_id):
        yield from unload_parts(extra)


def unload_parts(extra: bytes) -> list[PartInfo]:
    """Return the parts that a unit of an unload left in the ledger, before any rejects."""
    parts, _, _ = extra.partition(b"\n")
    return [PartInfo.from_json(part) for part in json.loads(parts)]
