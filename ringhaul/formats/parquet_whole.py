"""Tell a Parquet file from several that were put one after the other.

A reader begins at the end of a file: of several files it sees the last footer alone, whose offsets
then lead into the first file. The rows of all files but one would be missing, or be others.
"""

from __future__ import annotations

import io

import pyarrow.parquet as pq

from ringhaul.errors import SourceCorrupt

_MAGIC = b"PAR1"
#: Indexes of pages and filters, which may stand before a footer, are searched up to this size.
_INDEXES_BYTES_MAX = 1 << 20
_TAIL_BYTES = 8  # size of the footer, magic


def check_one_file(
    file: io.RawIOBase, size_bytes: int, metadata: pq.FileMetaData, path: str
) -> None:
    """Raise `SourceCorrupt` if other Parquet files precede the last one in `file`."""
    footer = size_bytes - _TAIL_BYTES - metadata.serialized_size
    data_end = max(
        map(_end_of_group, map(metadata.row_group, range(metadata.num_row_groups))),
        default=len(_MAGIC),
    )
    # What lies between the data and the footer; the size of earlier files adds to it.
    begin = footer - data_end
    if begin < 2 * len(_MAGIC):
        return
    start = max(0, begin - _INDEXES_BYTES_MAX)
    file.seek(start)
    searched = b""
    wanted = begin + len(_MAGIC) - start
    while len(searched) < wanted and (more := file.read(wanted - len(searched))):
        searched += more
    at = searched.rfind(2 * _MAGIC)
    if at >= 0:
        raise SourceCorrupt(
            f"{path}: another Parquet file begins at byte {start + at + len(_MAGIC):,}: several "
            "were put one after the other, and only the last one could be read; give the files "
            "one by one"
        )


def _end_of_group(group: pq.RowGroupMetaData) -> int:
    chunks = map(group.column, range(group.num_columns))
    return max(
        (
            (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
            for chunk in chunks
        ),
        default=len(_MAGIC),
    )
