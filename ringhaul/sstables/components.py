"""The names of components, and the two that describe others: Digest.crc32 and TOC.txt.

Digest.crc32 is the CRC32 of Data.db as it is on disk, in decimal; `nodetool import` checks it.
TOC.txt lists the components, one a line. Classes: `BigFormat.Components`, `DataIntegrityMetadata`,
`TOCComponent`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringhaul.sstables.version import SSTableVersion

DATA = "Data.db"
INDEX = "Index.db"
SUMMARY = "Summary.db"
FILTER = "Filter.db"
STATISTICS = "Statistics.db"
COMPRESSION_INFO = "CompressionInfo.db"
DIGEST = "Digest.crc32"
TOC = "TOC.txt"


def file_name(version: SSTableVersion, number: int, component: str) -> str:
    """Return the name of a file of the SSTable with this number, from 1."""
    return f"{version}-{number}-big-{component}"


def digest_bytes(crc: int) -> bytes:
    """Return Digest.crc32. `crc`: the CRC32 of Data.db as it is on disk."""
    return str(crc).encode()


def toc_bytes(components: Iterable[str]) -> bytes:
    """Return TOC.txt, which lists these components and itself."""
    return "".join(f"{name}\n" for name in (*components, TOC)).encode()
