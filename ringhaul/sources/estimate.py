"""Estimate how many records sources hold, from few of their bytes."""

from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.formats.records import count_line_ends
from ringhaul.formats.suffixes import compression_of
from ringhaul.sources.beginning import Beginning
from ringhaul.storage.access import is_url

#: The lines of files up to this size are counted; larger files are sampled.
ESTIMATE_WHOLE_BYTES = 16 * 2**20
#: The limit for files behind URLs, where the bytes of many files come over one network.
ESTIMATE_REMOTE_BYTES = 2 * 2**20
ESTIMATE_SAMPLES = 8
#: A sample misleads where record lengths drift through the file; too many is harmless.
ESTIMATE_MARGIN = 1.5
#: A file that is only sampled is assumed to hold at most one record for this many of its bytes, if
#: that is more than the samples suggest: records may be shorter elsewhere.
PLAIN_RECORD_BYTES = 32
#: `PLAIN_RECORD_BYTES` for a compressed file, where only the beginning is seen.
PACKED_RECORD_BYTES = 1
#: These assumptions count up to this number; beyond it, only the samples do. Row timestamps that
#: begin this many microseconds (17 minutes) before a job do less harm than an hour would: what an
#: application wrote within that time wins over the load.
CAUTION_RECORDS = 1_000_000_000


class Estimate(NamedTuple):
    """How many records a source holds."""

    #: Approximate, rather too many than too few.
    records: int
    #: Unlikely to be exceeded, even where records are shorter than any that was seen.
    bound: int


def most_records(estimates: Sequence[Estimate]) -> int:
    """Return a count that sources together hardly exceed; cautious up to `CAUTION_RECORDS`."""
    bound = sum(found.bound for found in estimates)
    return max(sum(found.records for found in estimates), min(bound, CAUTION_RECORDS))


def estimate(beginning: Beginning) -> Estimate:
    """Estimate how many records a source holds.

    No record is shorter than a line, so lines are counted: in all of a small file, in samples of a
    large file, and at the beginning of a compressed file. Raises as `Beginning.read` does.
    """
    source = beginning.source
    most_bytes = ESTIMATE_REMOTE_BYTES if is_url(source.path) else ESTIMATE_WHOLE_BYTES
    if source.whole:
        data = beginning.read_up_to(0, most_bytes)
        lines = _lines(data)
        used = beginning.stored_bytes_at(most_bytes)
        if len(data) < most_bytes or not used:
            return Estimate(lines, lines)
        records = int(lines / used * source.size_bytes * ESTIMATE_MARGIN) + 1
        packed = bool(compression_of(source.path))
        record_bytes = PACKED_RECORD_BYTES if packed else PLAIN_RECORD_BYTES
        return Estimate(records, max(records, source.size_bytes // record_bytes))
    if source.size_bytes <= most_bytes:
        lines = _lines(beginning.read_up_to(0, most_bytes))
        return Estimate(lines, lines)
    sample_bytes = most_bytes // ESTIMATE_SAMPLES
    densest = 0.0
    for number in range(ESTIMATE_SAMPLES):
        at = (source.size_bytes - sample_bytes) * number // (ESTIMATE_SAMPLES - 1)
        data = beginning.read_up_to(at, sample_bytes)
        densest = max(densest, _lines(data) / len(data))
    records = int(densest * source.size_bytes * ESTIMATE_MARGIN) + 1
    return Estimate(records, max(records, source.size_bytes // PLAIN_RECORD_BYTES))


def _lines(data: bytes) -> int:
    return count_line_ends(data, 0, len(data)) + 1
