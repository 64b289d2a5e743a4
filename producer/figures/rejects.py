"""Show the rejects of a job as lines, and export them as a file that can be loaded."""

from __future__ import annotations

import itertools
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import BinaryIO, NamedTuple

from producer.figures.reject_source import RejectReader, read_bytes
from producer.outputs.whole_file import whole_file
from producer.spool_names import path_as_given
from ringhaul.errors import OutputUnusable, SourceChanged, SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import write_header
from ringhaul.formats.transcoding import encoder_of
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.records.job import Input, LoadJob, LoadSource
from ringhaul.records.rejects import Reject, unpack_rejects
from ringhaul.sources.files import check_unchanged
from ringhaul.statements.result import LISTED_MAX, StatementResult, split_extra
from ringhaul.statements.values import StatementValues
from ringhaul.storage.access import is_url

#: How many headers an export tells apart; each has an open file.
FILES_MAX = 100


def job_rejects(ledger: Ledger, job_id: str) -> Iterator[Reject]:
    """Yield all rejects of a job in the order of the input. Raises `JobMissing`, and `JobDamaged`
    if Redis lost part of the job: the remaining ones would look complete."""
    ledger.check(job_id)
    with _readable(job_id):
        yield from _rejects(ledger, job_id)


@contextmanager
def _readable(job_id: str) -> Iterator[None]:
    """Raise `JobDamaged` if rejects in the block cannot be unpacked."""
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
    for _, extra in ledger.extras(job_id):
        yield from unpack_rejects(split_extra(extra)[1])


def shown_rejects(ledger: Ledger, job_id: str) -> Iterator[Reject]:
    """Yield all rejects of a job with file names for users, see `path_as_given`."""
    for reject in job_rejects(ledger, job_id):
        yield replace(reject, file=path_as_given(reject.file, job_id))


def _kind(ledger: Ledger, job_id: str) -> JobKind:
    return JobKind.of_labels(ledger.status(job_id).labels)


def _has_transforms(ledger: Ledger, job_id: str) -> bool:
    return bool(json.loads(ledger.job_spec(job_id))["transforms"])


def reject_lines(ledger: Ledger, job_id: str, limit: int) -> Iterator[str]:
    """Yield a line for each of the first `limit` rejects, and the number of further ones."""
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
    if message := not_kept(ledger, job_id):
        yield f"... {message}"


def not_kept(ledger: Ledger, job_id: str) -> str:
    """Return a message about entries that were counted but not kept, and where to find them; empty
    if all were kept."""
    kind = _kind(ledger, job_id)
    if not kind.runs_statements:
        return ""
    count = sum(StatementResult.unpack(packed).not_kept for _, packed in ledger.results(job_id))
    if not count:
        return ""
    what = "keys without a row" if kind is JobKind.LOOKUP else "rows that were not applied"
    in_answers = "the answers' column [applied] shows all"
    way_on = "look up smaller lists" if kind is JobKind.LOOKUP else in_answers
    return f"{count:,} more, not listed: the ledger keeps {LISTED_MAX:,} {what} of a job; {way_on}"


class Exported(NamedTuple):
    """What an export has written."""

    records: int
    files: list[str]  #: the first has the name that the user gave
    replaced: bool = False  #: whether it took the place of another


def export_rejects(ledger: Ledger, job_id: str, path: str) -> Exported:
    """Write the original bytes of every reject to `path` (- is stdout).

    A source that was decoded as a stream (UTF-16 and the like) is written in its encoding again.
    The header of the source comes first if it had one. Records under another header, or of another
    format, go to further files, `NAME-2.csv` and so on. Records of Parquet files, which have no
    bytes as text, are written as JSON Lines. So are rows of a table, unless the ledger keeps only
    the row's place. Each file is replaced atomically. Raises `UsageError` if stdout would need more
    than one file, if more than `FILES_MAX` files are needed, and if `path` is a source of the job.
    """
    there = path != "-" and os.path.isfile(path)
    if _kind(ledger, job_id) is JobKind.UNLOAD:
        return Exported(_export_rows(ledger, job_id, path), [path], there)
    job = _loaded(ledger, job_id)
    sources = {source.file.path: source for source in job.sources}
    encode = _encoder(job.dialect)
    written = 0
    refuse_source(path, {source.file.stored.path for source in job.sources})
    outputs: dict[object, BinaryIO] = {}
    files = [path]
    with ExitStack() as opened, RejectReader(job) as reader:
        first = opened.enter_context(_opened(path))
        for reject in job_rejects(ledger, job_id):
            source = sources[reject.file]
            # Compare the names: a byte order mark or another line end makes no difference.
            form = source.fields if source.format == "csv" else source.format == "fixed"
            if form not in outputs:
                out = first
                if outputs:
                    files.append(_further(path, reject.file, source, len(files)))
                    out = opened.enter_context(_opened(files[-1]))
                out.write(encode(_header(source, job)))
                outputs[form] = out
            outputs[form].write(encode(_data(reject, source, reader) + b"\n"))
            written += 1
    return Exported(written, files, there)


def _further(path: str, source: str, like: LoadSource, count: int) -> str:
    """Return the name of another file for the records of `source`."""
    if path == "-" or count == FILES_MAX:
        most = "standard output holds" if path == "-" else f"--export writes {FILES_MAX} files for"
        raise UsageError(
            f"{source} has another header or format than the sources before it, and {most} "
            f"{'one' if path == '-' else 'so many'}: "
            f"{'give --export FILE' if path == '-' else 'load such sources one after the other'}"
        )
    stem, suffix = os.path.splitext(path)
    suffix = suffix if like.format in ("csv", "fixed") else ".jsonl"
    names = (f"{stem}-{number}{suffix}" for number in itertools.count(2))
    return next(name for name in names if not os.path.exists(name))


def _export_rows(ledger: Ledger, job_id: str, path: str) -> int:
    written = 0
    with _opened(path) as out:
        for reject in job_rejects(ledger, job_id):
            if reject.data is not None:
                out.write(reject.data + b"\n")
                written += 1
    return written


def refuse_source(path: str, sources: Iterable[str]) -> None:
    """Raise `UsageError` if the file at `path` is one of `sources`: its records would be lost."""
    for source in sources:
        with suppress(OSError):  # a file does not exist, or its path is a URL
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
    """Return the function that converts bytes of the ledger to the encoding of the sources."""
    if dialect.decoding != "stream":
        return bytes
    return encoder_of(dialect.encoding)


def _loaded(ledger: Ledger, job_id: str) -> Input:
    """Return the files that the records are from. Raises `UsageError` if there are none."""
    spec = json.loads(ledger.job_spec(job_id))
    kind = JobKind(spec["kind"])
    if kind is JobKind.EXEC and spec["spans"]:
        raise UsageError(f"{job_id} has its values from ranges: there is no file to export from")
    return LoadJob.from_json(spec) if kind.is_load else StatementValues.from_json(spec["values"])


def _header(source: LoadSource, job: Input) -> bytes:
    """Return the bytes before a source's first record; empty if it has no header.

    If the source is gone, as standard input is after its job, write a header with its field names.
    """
    if not source.start_offset_bytes:  # JSON Lines and Parquet have no header either
        return b""
    try:
        return read_bytes(source, 0, source.start_offset_bytes, job)
    except (SourceChanged, SourceMissing):
        return write_header(source.fields, source.dialect(job))


def _data(reject: Reject, source: LoadSource, reader: RejectReader) -> bytes:
    """Return the record's original bytes, from its file if the ledger has only its place."""
    if reject.data is not None:
        return reject.data
    try:
        check_unchanged(source.file)
        data = reader.record(source, reject)
        if not is_url(source.file.path):  # parts behind URLs are of one version
            check_unchanged(source.file)
    except SourceChanged as error:
        raise SourceChanged(
            f"the record at byte {reject.offset} is not kept in the ledger, and {error}"
        ) from error
    return data
