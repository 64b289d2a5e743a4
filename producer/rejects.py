"""Rejects of a job as lines for people, and as a file that loads again."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import BinaryIO

from ringhaul.errors import SourceChanged, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.parquet_json import record_json
from ringhaul.formats.parquet_read import RowBlock, row_groups
from ringhaul.formats.sources import check_unchanged
from ringhaul.formats.split import Position
from ringhaul.ledger.ledger import Ledger
from ringhaul.load.job import LoadJob, LoadSource
from ringhaul.load.reading import open_records, parquet_metadata, read_records
from ringhaul.load.rejects import Reject, unpack_rejects
from tasks.publish import KIND_LABEL


def job_rejects(ledger: Ledger, job_id: str) -> Iterator[Reject]:
    """All rejects of a job, in the order of the input. Raises `JobMissing`."""
    kind = _kind(ledger, job_id)
    if kind not in ("load", "lookup", "exec", "transforming unload"):
        raise UsageError(f"{job_id} is a {kind}: it reads rows, and has no rejects")
    if kind == "load":
        for _, extra in ledger.extras(job_id):
            yield from unpack_rejects(extra)
        return
    from ringhaul.read.ask import split_extra  # what loads do not need to import

    for _, extra in ledger.extras(job_id):
        yield from unpack_rejects(split_extra(extra)[1])


def _kind(ledger: Ledger, job_id: str) -> str:
    kind = ledger.status(job_id).labels.get(KIND_LABEL, "load")
    if kind == "unload" and json.loads(ledger.job_spec(job_id))["transforms"]:
        return "transforming unload"
    return kind


def reject_lines(ledger: Ledger, job_id: str, limit: int) -> Iterator[str]:
    """One line for each reject, and how many more there are."""
    rejects = job_rejects(ledger, job_id)
    for reject in islice(rejects, limit):
        if not reject.line:
            row = "(longer than is kept)" if reject.data is None else reject.data.decode()
            yield f"{reject.file}  {reject.stage}  {reject.reason}  {row}"
            continue
        at = f"column {reject.column}: " if reject.column else ""
        yield f"{reject.where}  byte {reject.offset}  {reject.stage}  {at}{reject.reason}"
    more = sum(1 for _ in rejects)
    if more:
        yield f"... {more:,} more (--limit, --json or --export)"


def export_rejects(ledger: Ledger, job_id: str, path: str) -> int:
    """Write the original bytes of every reject to `path` (- is stdout); their number.

    Of a source that was decoded as a stream (UTF-16 and the like), its encoding's bytes for the
    same text. The header of the source comes first if it had one. Records of Parquet files, which
    have no bytes of their own, are written as JSON Lines. Sources whose headers or formats differ
    cannot share one file: `UsageError` says so. Rows of a table are written as JSON Lines, but for
    those that are too long to be kept in the ledger.
    """
    if _kind(ledger, job_id) == "transforming unload":
        return _export_rows(ledger, job_id, path)
    job = _loaded(ledger, job_id)
    sources = {source.file.path: source for source in job.sources}
    encode = _encoder(job.dialect)
    written = 0
    first: LoadSource | None = None
    with ExitStack() as stack:
        out: BinaryIO = sys.stdout.buffer
        if path != "-":
            out = stack.enter_context(open(path, "wb"))
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
            out.write(encode(_data(reject, source, job) + b"\n"))
            written += 1
    return written


def _export_rows(ledger: Ledger, job_id: str, path: str) -> int:
    written = 0
    with ExitStack() as stack:
        out: BinaryIO = sys.stdout.buffer
        if path != "-":
            out = stack.enter_context(open(path, "wb"))
        for reject in job_rejects(ledger, job_id):
            if reject.data is not None:
                out.write(reject.data + b"\n")
                written += 1
    return written


def _encoder(dialect: CsvDialect) -> Callable[[bytes], bytes]:
    """Turns what the ledger holds back into the encoding of the sources."""
    if dialect.decoding != "stream":
        return bytes
    # One encoder for the whole file: a byte order mark stands only at its beginning.
    encoder = codecs.getincrementalencoder(dialect.encoding)("replace")
    return lambda text: encoder.encode(text.decode("utf-8", "replace"))


def _loaded(ledger: Ledger, job_id: str) -> LoadJob:
    """Whose files the records are of."""
    spec = json.loads(ledger.job_spec(job_id))
    if spec["kind"] == "exec" and spec["spans"]:
        raise UsageError(f"{job_id} has its values from ranges: there is no file to export from")
    return LoadJob.from_json(spec if spec["kind"] == "load" else spec["values"])


def _header(source: LoadSource, job: LoadJob) -> bytes:
    """The bytes before a source's first record; empty when it has no header."""
    if not source.start_offset_bytes:  # neither have JSON Lines and Parquet one
        return b""
    return _read(source, 0, source.start_offset_bytes, job)


def _data(reject: Reject, source: LoadSource, job: LoadJob) -> bytes:
    """The record's original bytes; a long one is not in the ledger and is read from its file."""
    if reject.data is not None:
        return reject.data
    try:
        check_unchanged(source.file)
    except SourceChanged as error:
        raise SourceChanged(
            f"the record at byte {reject.offset} is too long to be kept in the ledger, and {error}"
        ) from error
    if source.format == "parquet":
        return _read_row(source, reject, job)
    return _read(source, reject.offset, reject.length, job)


def _read_row(source: LoadSource, reject: Reject, job: LoadJob) -> bytes:
    """A row of a Parquet file as JSON."""
    kinds = source.wanted_types(job)
    groups = row_groups(parquet_metadata(source.file), 0)
    first_row = next(group.first_row for group in groups if group.number == reject.offset)
    start = Position(reject.offset, 0, first_row)
    for block in read_records(source, job, start, 0, 0):
        if reject.line < block.position.line + block.records_count:
            assert isinstance(block, RowBlock)
            return record_json(block.batch, reject.line - block.position.line, kinds)
    raise SourceChanged(f"{source.file.path} has no row {reject.line}; something changed it")


def _read(source: LoadSource, offset_bytes: int, length_bytes: int, job: LoadJob) -> bytes:
    chunks, left = [], length_bytes
    with open_records(source.file, offset_bytes, length_bytes, source.dialect(job)) as stream:
        while left and (chunk := stream.read(left)):
            chunks.append(chunk)
            left -= len(chunk)
    return b"".join(chunks)
