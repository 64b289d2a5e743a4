"""What a file is that was taken for text: told by its first bytes."""

import re

#: How these files begin -> what they are, and what to do. Where a text could begin so, too, the
#: bytes that follow must be none of a text's.
_BINARY = re.compile(rb"[\s\S]{0,60}[\x00-\x08\x0e-\x1f]")
_KINDS: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "is compressed by gzip: give it a name that ends in .gz, or unpack it"),
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd: give it a name that ends in .zst, or unpack it"),
    (b"\xfd7zXZ\0", "is compressed by xz: give it a name that ends in .xz, or unpack it"),
    (b"BZh", "is compressed by bzip2: give it a name that ends in .bz2, or unpack it"),
    (b"\x04\x22\x4d\x18", "is compressed by lz4, which is not read: unpack it"),
    (b"\xff\x06\0\0sNaPpY", "is compressed by snappy, which is not read: unpack it"),
    (
        b"PK\x03\x04",
        "is a ZIP archive, as Excel workbooks are: unpack it, or save the workbook as CSV",
    ),
    (b"\xd0\xcf\x11\xe0", "is an Office document, such as a workbook: save it as CSV"),
    (b"PAR1", "is a Parquet file: give --format parquet, or a name that ends in .parquet"),
    (b"ORC", "is an ORC file, which is not read: write it as Parquet or CSV"),
    (b"Obj\x01", "is an Avro file, which is not read: write it as Parquet or CSV"),
)


def binary_kind(beginning: bytes) -> str | None:
    """What a file that begins so is, and what to do, in words; None: it may be text."""
    for magic, words in _KINDS:
        if beginning.startswith(magic) and _BINARY.match(beginning):
            return words
    return None
