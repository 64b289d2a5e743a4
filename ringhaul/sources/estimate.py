"""About how many records sources hold, told from few of their bytes."""

from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.formats.dialect import RFC_4180, CsvDialect
from ringhaul.formats.pieces import Stream
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.suffixes import compression_of
from ringhaul.sources.files import decoded, open_stored
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url

#: The lines of files up to this size are counted; larger ones are sampled.
ESTIMATE_WHOLE_BYTES = 16 * 2**20
#: The same behind URLs, where the bytes of many files come over one network.
ESTIMATE_REMOTE_BYTES = 2 * 2**20
ESTIMATE_SAMPLES = 8
#: A sample misleads where record lengths drift through the file; too many is harmless.
ESTIMATE_MARGIN = 1.5
#: A file that is only sampled is taken to hold no more than a record for so many of its bytes, if
#: that is more than the samples say: they tell nothing of records that are short elsewhere.
PLAIN_RECORD_BYTES = 32
#: The same of a compressed one, which is seen at its beginning alone.
PACKED_RECORD_BYTES = 1
#: Such caution ends here, and what the samples say counts alone. Row timestamps that begin so many
#: microseconds (17 minutes) before a job harm less than an hour would: what an application wrote
#: within them wins over the load.
CAUTION_RECORDS = 1_000_000_000


class Estimate(NamedTuple):
    """How many records a source holds."""

    #: About, rather too many than too few.
    records: int
    #: It hardly holds more, even where the records are shorter than any that was seen.
    bound: int


def most_records(estimates: Sequence[Estimate]) -> int:
    """What sources hardly hold more than, together; with caution up to `CAUTION_RECORDS`."""
    bound = sum(found.bound for found in estimates)
    return max(sum(found.records for found in estimates), min(bound, CAUTION_RECORDS))


def estimate(source: SourceFile, dialect: CsvDialect = RFC_4180) -> Estimate:
    """How many records a source holds.

    No record is shorter than a line, so lines are counted: all of a small file, samples of a
    large one, the beginning of a compressed one.
    """
    most_bytes = ESTIMATE_REMOTE_BYTES if is_url(source.path) else ESTIMATE_WHOLE_BYTES
    with open_stored(source) as file:
        if source.whole:
            stream = decoded(source, file, dialect)
            data = _read_up_to(stream, most_bytes)
            lines = _lines(data)
            used = file.tell()
            if len(data) < most_bytes or used == 0:
                return Estimate(lines, lines)
            records = int(lines / used * source.size_bytes * ESTIMATE_MARGIN) + 1
            packed = bool(compression_of(source.path))
            record_bytes = PACKED_RECORD_BYTES if packed else PLAIN_RECORD_BYTES
            return Estimate(records, max(records, source.size_bytes // record_bytes))
        if source.size_bytes <= most_bytes:
            lines = _lines(_read_up_to(file, most_bytes))
            return Estimate(lines, lines)
        sample_bytes = most_bytes // ESTIMATE_SAMPLES
        densest = 0.0
        for number in range(ESTIMATE_SAMPLES):
            file.seek((source.size_bytes - sample_bytes) * number // (ESTIMATE_SAMPLES - 1))
            data = _read_up_to(file, sample_bytes)
            densest = max(densest, _lines(data) / len(data))
        records = int(densest * source.size_bytes * ESTIMATE_MARGIN) + 1
        return Estimate(records, max(records, source.size_bytes // PLAIN_RECORD_BYTES))


def _lines(data: bytes) -> int:
    return count_line_ends(data, 0, len(data)) + 1


def _read_up_to(stream: Stream, size_bytes: int) -> bytes:
    chunks = []
    while size_bytes > 0 and (chunk := stream.read(size_bytes)):
        chunks.append(chunk)
        size_bytes -= len(chunk)
    return b"".join(chunks)
