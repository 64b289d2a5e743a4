"""About how many records sources hold, told from few of their bytes."""

from collections.abc import Sequence

from ringhaul.formats.dialect import RFC_4180, CsvDialect
from ringhaul.formats.pieces import Stream
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.sources import SourceFile, decoded, open_stored
from ringhaul.storage.access import is_url

#: The lines of files up to this size are counted; larger ones are sampled.
ESTIMATE_WHOLE_BYTES = 16 * 2**20
#: The same behind URLs, where the bytes of many files come over one network.
ESTIMATE_REMOTE_BYTES = 2 * 2**20
ESTIMATE_SAMPLES = 8
#: A sample misleads where record lengths drift through the file; too many is harmless.
ESTIMATE_MARGIN = 1.5


def estimate_records(sources: Sequence[SourceFile], dialect: CsvDialect = RFC_4180) -> int:
    """About how many records `sources` hold, rather too many than too few.

    No record is shorter than a line, so lines are counted: all of a small file, samples of a
    large one, the beginning of a compressed one.
    """
    return sum(_estimate(source, dialect) for source in sources)


def _estimate(source: SourceFile, dialect: CsvDialect) -> int:
    most_bytes = ESTIMATE_REMOTE_BYTES if is_url(source.path) else ESTIMATE_WHOLE_BYTES
    with open_stored(source) as file:
        if source.whole:
            stream = decoded(source, file, dialect)
            data = _read_up_to(stream, most_bytes)
            lines = count_line_ends(data, 0, len(data)) + 1
            used = file.tell()
            if len(data) < most_bytes or used == 0:
                return lines
            return int(lines / used * source.size_bytes * ESTIMATE_MARGIN) + 1
        if source.size_bytes <= most_bytes:
            data = _read_up_to(file, most_bytes)
            return count_line_ends(data, 0, len(data)) + 1
        sample_bytes = most_bytes // ESTIMATE_SAMPLES
        densest = 0.0
        for number in range(ESTIMATE_SAMPLES):
            file.seek((source.size_bytes - sample_bytes) * number // (ESTIMATE_SAMPLES - 1))
            data = _read_up_to(file, sample_bytes)
            densest = max(densest, (count_line_ends(data, 0, len(data)) + 1) / len(data))
        return int(densest * source.size_bytes * ESTIMATE_MARGIN) + 1


def _read_up_to(stream: Stream, size_bytes: int) -> bytes:
    chunks = []
    while size_bytes > 0 and (chunk := stream.read(size_bytes)):
        chunks.append(chunk)
        size_bytes -= len(chunk)
    return b"".join(chunks)
