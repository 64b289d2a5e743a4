"""LZ4 for the driver's connections, by pyarrow: it would otherwise look for another package."""

from __future__ import annotations

from cassandra import connection
from cassandra.segment import SegmentCodec

from ringhaul.cql.compressed_frames import NAME, compress_body, decompress_body


def offer_lz4() -> None:
    """Let the driver of this process use LZ4 on connections that ask for it."""
    pair = compress_body, decompress_body
    connection.locally_supported_compressions[NAME] = pair
    connection.segment_codec_lz4 = SegmentCodec(*pair)
