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
from ringhaul.formats.sources import check_unchanged
from ringhaul.ledger.ledger import Ledger
from ringhaul.load.job import LoadJob, LoadSource
from ringhaul.load.reading import open_records
from ringhaul.load.rejects import Reject, unpack_rejects


def job_rejects(ledger: Ledger, job_id: str) -> Iterator[Reject]:
    """All rejects of a job, in the order of the input. Raises `JobMissing`."""
    ledger.status(job_id)
    for _, blob in ledger.extras(job_id):
        yield from unpack_rejects(blob)


def reject_lines(ledger: Ledger, job_id: str, limit: int) -> Iterator[str]:
    """One line for each reject, and how many more there are."""
    rejects = job_rejects(ledger, job_id)
    for reject in islice(rejects, limit):
        at = f"column {reject.column}: " if reject.column else ""
        yield f"{reject.where}  byte {reject.offset}  {reject.stage}  {at}{reject.reason}"
    more = sum(1 for _ in rejects)
    if more:
        yield f"... {more:,} more (--limit, --json or --export)"


def export_rejects(ledger: Ledger, job_id: str, path: str) -> int:
    """Write the original bytes of every reject to `path` (- is stdout); their number.

    Of a source that was decoded as a stream (UTF-16 and the like), its encoding's bytes for the
    same text. The header of the source comes first if it had one. Sources whose headers differ
    cannot share one file: `UsageError` says so.
    """
    job = LoadJob.from_json(json.loads(ledger.job_spec(job_id)))
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
            # By their names: a byte order mark or another line end makes no other header.
            elif source.fields != first.fields:
                raise UsageError(
                    f"{reject.file} has another header than the sources before it; load and "
                    "export sources with different headers separately"
                )
            out.write(encode(_data(reject, source, job) + b"\n"))
            written += 1
    return written


def _encoder(dialect: CsvDialect) -> Callable[[bytes], bytes]:
    """Turns what the ledger holds back into the encoding of the sources."""
    if dialect.decoding != "stream":
        return bytes
    # One encoder for the whole file: a byte order mark stands only at its beginning.
    encoder = codecs.getincrementalencoder(dialect.encoding)("replace")
    return lambda text: encoder.encode(text.decode("utf-8", "replace"))


def _header(source: LoadSource, job: LoadJob) -> bytes:
    """The bytes before a source's first record; empty when it has no header."""
    if not source.start_offset_bytes:
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
    return _read(source, reject.offset, reject.length, job)


def _read(source: LoadSource, offset_bytes: int, length_bytes: int, job: LoadJob) -> bytes:
    chunks, left = [], length_bytes
    with open_records(source.file, offset_bytes, length_bytes, job.dialect) as stream:
        while left and (chunk := stream.read(left)):
            chunks.append(chunk)
            left -= len(chunk)
    return b"".join(chunks)
