"""The bytes of a unit, wherever its source keeps them: a range of a file, or a decoded stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.sources import SourceFile, open_range, open_whole
from ringhaul.formats.split import Stream
from ringhaul.load.unit import TO_THE_END

SKIP_BYTES = 1 << 20


@contextmanager
def open_records(
    file: SourceFile, offset_bytes: int, length_bytes: int, dialect: CsvDialect
) -> Iterator[Stream]:
    """A stream that stands at `offset_bytes` and ends after `length_bytes` or TO_THE_END.

    Offsets are those of the decoded stream where the file is compressed or encoded.
    Raises `SourceMissing`, `SourceChanged` and, from `read`, `SourceCorrupt`.
    """
    if not file.whole:
        if length_bytes == TO_THE_END:
            length_bytes = file.size_bytes - offset_bytes
        with open_range(file, offset_bytes, length_bytes) as stream:
            yield stream
        return
    with open_whole(file, dialect) as stream:
        left = offset_bytes
        while left and (skipped := stream.read(min(left, SKIP_BYTES))):
            left -= len(skipped)
        yield stream
