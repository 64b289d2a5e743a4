"""Measure how fast a load's source can be read and converted, without writing: like a dry run."""

from __future__ import annotations

import time

from producer.tune.limits import SourceRate
from ringhaul.errors import UsageError
from ringhaul.formats.split import Position
from ringhaul.records.job import LoadJob
from ringhaul.records.reading import read_records
from ringhaul.records.rows import RowEncoder
from ringhaul.records.unit import TO_THE_END
from ringhaul.transform.chain import Transform


def measure_source(
    job: LoadJob, seconds: float, transforms: tuple[Transform, ...] = ()
) -> SourceRate:
    """Read and convert the first source for some seconds, in this process.

    Raises `UsageError` if it has no record, and as `read_records` does.
    """
    source = job.sources[0]
    encoder = RowEncoder(job, source, transforms)
    start = Position(source.start_offset_bytes, 0, source.start_line)
    records = bytes_read = 0
    read_s = convert_s = 0.0
    began_s = before_s = time.perf_counter()
    for block in read_records(source, job, start, TO_THE_END, job.block_bytes):
        got_s = time.perf_counter()
        for _ in encoder.parts(block):
            pass
        done_s = time.perf_counter()
        records, bytes_read = records + block.records_count, bytes_read + block.size_bytes
        read_s, convert_s = read_s + got_s - before_s, convert_s + done_s - got_s
        before_s = done_s
        if done_s - began_s > seconds:
            break
    if not records:
        raise UsageError(f"{source.file.path} has no records: there is nothing to measure")
    whole = all(one.file.whole for one in job.sources)
    return SourceRate(
        rows_s=records / max(read_s, 1e-6),
        encoded_rows_s=records / max(read_s + convert_s, 1e-6),
        bytes_s=bytes_read / max(read_s, 1e-6),
        streams_max=len(job.sources) if whole else 0,
    )
