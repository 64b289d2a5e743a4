"""Rejects of a job as lines for people, and as a file that loads again."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import BinaryIO

from producer.inputs.stdin_spool import path_as_given
from producer.outputs.whole_file import whole_file
from producer.report.reject_source import Again, read_bytes
from ringhaul.errors import OutputUnusable, SourceChanged, SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import write_header
from ringhaul.formats.transcoding import encoder_of
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rejects import Reject, unpack_rejects
from ringhaul.sources.files import check_unchanged


def job_rejects(ledger: Ledger, job_id: str) -> Iterator[Reject]:
    """All rejects of a job, in the order of the input. Raises `JobMissing`, and `JobDamaged` where
    Redis lost part of the job: the others would look like all."""
    ledger.check(job_id)
    with _readable(job_id):
        yield from _rejects(ledger, job_id)


@contextmanager
def _readable(job_id: str) -> Iterator[None]:
    """What cannot be unpacked raises `JobDamaged`."""
    try:
        yield
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        reason = f"its rejects cannot be read ({type(error).__name__})"
        raise JobDamaged(job_id, [reason]) from error


def _rejects(ledger: Ledger, job_id: str) -> Iterator[Reject]:
    kind = _kind(ledger, job_id)
    if kind.has_result or (kind is JobKind.UNLOAD and not _has_transforms(ledger, job_id)):
        raise UsageError(f"{job_id} is a {kind}: it reads rows, and has no rejects")
    if kind.is_load:
        for _, extra in ledger.extras(job_id):
            yield from unpack_rejects(extra)
        return
    from ringhaul.statements.job import split_extra  # what loads do not need to import

    for _, extra in ledger.extras(job_id):
        yield from unpack_rejects(split_extra(extra)[1])


def shown_rejects(ledger: Ledger, job_id: str) -> Iterator[Reject]:
    """The same as they are shown: with the names that the user knows of files."""
    for reject in job_rejects(ledger, job_id):
        yield replace(reject, file=path_as_given(reject.file, job_id))


def _kind(ledger: Ledger, job_id: str) -> JobKind:
    return JobKind.of_labels(ledger.status(job_id).labels)


def _has_transforms(ledger: Ledger, job_id: str) -> bool:
    return bool(json.loads(ledger.job_spec(job_id))["transforms"])


def reject_lines(ledger: Ledger, job_id: str, limit: int) -> Iterator[str]:
    """One line for each reject, and how many more there are."""
    rejects = shown_rejects(ledger, job_id)
    for reject in islice(rejects, limit):
        if not reject.line:
            row = "(not kept)" if reject.data is None else reject.data.decode()
            yield f"{reject.file}  {reject.stage}  {reject.reason}  {row}"
            continue
        at = f"column {reject.column}: " if reject.column else ""
        yield f"{reject.where}  byte {reject.offset}  {reject.stage}  {at}{reject.reason}"
    more = sum(1 for _ in rejects)
    if more:
        yield f"... {more:,} more (--limit, --json or --export)"
    if told := not_kept(ledger, job_id):
        yield f"... {told}"


def not_kept(ledger: Ledger, job_id: str) -> str:
    """In words: what of a job is counted and kept nowhere, and what tells of it. Empty: nothing."""
    kind = _kind(ledger, job_id)
    if not kind.runs_statements:
        return ""
    from ringhaul.statements.job import LISTED_MAX, StatementResult

    count = sum(StatementResult.unpack(packed).not_kept for _, packed in ledger.results(job_id))
    if not count:
        return ""
    what = "keys without a row" if kind is JobKind.LOOKUP else "rows that were not applied"
    way_on = (
        "look up smaller lists" if kind is JobKind.LOOKUP else "[applied] of the answers tells all"
    )
    return f"{count:,} more, not kept: the ledger lists {LISTED_MAX:,} {what} of a job; {way_on}"


def export_rejects(ledger: Ledger, job_id: str, path: str) -> int:
    """Write the original bytes of every reject to `path` (- is stdout); their number.

    Of a source that was decoded as a stream (UTF-16 and the like), its encoding's bytes for the
    same text. The header of the source comes first if it had one. Records of Parquet files, which
    have no bytes of their own, are written as JSON Lines. Sources whose headers or formats differ
    cannot share one file: `UsageError` says so. Rows of a table are written as JSON Lines, but for
    those of which the ledger keeps the place alone. The file appears whole or not at all: what was
    at `path` stays until then, and a source of the job is refused with `UsageError`.
    """
    if _kind(ledger, job_id) is JobKind.UNLOAD:
        return _export_rows(ledger, job_id, path)
    job = _loaded(ledger, job_id)
    sources = {source.file.path: source for source in job.sources}
    encode = _encoder(job.dialect)
    written = 0
    first: LoadSource | None = None
    refuse_source(path, sources)
    with _opened(path) as out, Again(job) as again:
        for reject in job_rejects(ledger, job_id):
            source = sources[reject.file]
            if first is None:
                first = source
                out.write(encode(_header(source, job)))
            elif (source.format == "csv") != (first.format == "csv"):
                raise UsageError(
                    f"{reject.file} has another format than the sources before it; load and export "
                    "sources of different formats separately"
                )
            # By their names: a byte order mark or another line end makes no other header.
            elif source.format == "csv" and source.fields != first.fields:
                raise UsageError(
                    f"{reject.file} has another header than the sources before it; load and "
                    "export sources with different headers separately"
                )
            out.write(encode(_data(reject, source, again) + b"\n"))
            written += 1
    return written


def _export_rows(ledger: Ledger, job_id: str, path: str) -> int:
    written = 0
    with _opened(path) as out:
        for reject in job_rejects(ledger, job_id):
            if reject.data is not None:
                out.write(reject.data + b"\n")
                written += 1
    return written


def refuse_source(path: str, sources: Iterable[str]) -> None:
    """Raise `UsageError` if the file at `path` is one of these: its records would be lost."""
    for source in sources:
        with suppress(OSError):  # one of them is not there, or a URL
            if os.path.samefile(path, source):
                raise UsageError(
                    f"--export {path}: the job was loaded from this file; give another name"
                )


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        try:
            yield sys.stdout.buffer
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputUnusable(f"standard output cannot be written: {error.strerror}") from error
        return
    with whole_file(path) as out:
        yield out


def _encoder(dialect: CsvDialect) -> Callable[[bytes], bytes]:
    """Turns what the ledger holds back into the encoding of the sources."""
    if dialect.decoding != "stream":
        return bytes
    return encoder_of(dialect.encoding)


def _loaded(ledger: Ledger, job_id: str) -> LoadJob:
    """Whose files the records are of."""
    spec = json.loads(ledger.job_spec(job_id))
    if spec["kind"] == "exec" and spec["spans"]:
        raise UsageError(f"{job_id} has its values from ranges: there is no file to export from")
    return LoadJob.from_json(spec if JobKind(spec["kind"]).is_load else spec["values"])


def _header(source: LoadSource, job: LoadJob) -> bytes:
    """The bytes before a source's first record; empty when it has no header.

    Of a source that is no longer there, as standard input is when its job is over: its fields.
    """
    if not source.start_offset_bytes:  # neither have JSON Lines and Parquet one
        return b""
    try:
        return read_bytes(source, 0, source.start_offset_bytes, job)
    except (SourceChanged, SourceMissing):
        return write_header(source.fields, source.dialect(job))


def _data(reject: Reject, source: LoadSource, again: Again) -> bytes:
    """The record's original bytes, from its file where the ledger has its place alone."""
    if reject.data is not None:
        return reject.data
    try:
        check_unchanged(source.file)
    except SourceChanged as error:
        raise SourceChanged(
            f"the record at byte {reject.offset} is not kept in the ledger, and {error}"
        ) from error
    return again.record(source, reject)
