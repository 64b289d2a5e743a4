"""Tell a Parquet file from several that were put one after the other.

A reader begins at the end of a file: of several files it sees the last footer alone, whose offsets
then lead into the first file. The rows of all files but one would be missing, or be others.
"""

from __future__ import annotations

from ringhaul.errors import SourceCorrupt
from ringhaul.formats.parquet_footer import MAGIC, Footer
from ringhaul.formats.parquet_pages import ReadAt

#: Indexes of pages and filters, which may stand before a footer, are searched up to this size.
_INDEXES_BYTES_MAX = 1 << 20
_TAIL_BYTES = 8  # size of the footer, magic


def check_one_file(read: ReadAt, size_bytes: int, footer: Footer, path: str) -> None:
    """Raise `SourceCorrupt` if other Parquet files precede the last one in a file, whose bytes
    `read` returns."""
    footer_start = size_bytes - _TAIL_BYTES - footer.metadata.serialized_size
    ends = (end for group in range(footer.groups_count) for end in map(sum, footer.spans(group)))
    data_end = max(ends, default=len(MAGIC))
    # What lies between the data and the footer; the size of earlier files adds to it.
    begin = footer_start - data_end
    if begin < 2 * len(MAGIC):
        return
    start = max(0, begin - _INDEXES_BYTES_MAX)
    searched = b""
    wanted = begin + len(MAGIC) - start
    while len(searched) < wanted and (more := read(start + len(searched), wanted - len(searched))):
        searched += more
    at = searched.rfind(2 * MAGIC)
    if at >= 0:
        raise SourceCorrupt(
            f"{path}: another Parquet file begins at byte {start + at + len(MAGIC):,}: several "
            "were put one after the other, and only the last one could be read; give the files "
            "one by one"
        )
