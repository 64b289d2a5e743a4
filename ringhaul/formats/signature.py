"""Recognise, by its first bytes, a file that is read as text although it is not."""

import re

from ringhaul.option_names import input_option

#: How many bytes at the beginning of a file are examined.
LOOK_BYTES = 64
#: A text may begin with some of the bytes below, so a control character must also be near.
_BINARY = re.compile(rb"[\s\S]{0,60}[\x00-\x08\x0e-\x1f]")
#: (first bytes, name of the compression, suffix if it is supported, command that unpacks it).
_COMPRESSIONS: tuple[tuple[bytes, str, str, str], ...] = (
    (b"\x1f\x8b", "gzip", ".gz", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", ".zst", "zstd -dc"),
    (b"\xfd7zXZ\0", "xz", ".xz", "xz -dc"),
    (b"BZh", "bzip2", ".bz2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", ".lz4", "lz4 -dc"),
    (b"\x1f\x9d", "compress", "", "uncompress -c"),
    (b"\xff\x06\0\0sNaPpY", "snappy", "", "snzip -dc"),
)
#: (first bytes, what the file is and what to do about it).
_KINDS: tuple[tuple[bytes, str], ...] = (
    (
        b"PK\x03\x04",
        "is a ZIP archive, as Excel workbooks are: name its file .zip, or save the workbook as CSV",
    ),
    (b"\xd0\xcf\x11\xe0", "is an Office document, such as a workbook: save it as CSV"),
    (b"PAR1", "is a Parquet file: give {format} parquet{or_named}"),
    (b"ORC", "is an ORC file, which is not supported: write it as Parquet or CSV"),
    (b"Obj\x01", "is an Avro file, which is not supported: write it as Parquet or CSV"),
)


def binary_kind(beginning: bytes, *, piped: bool = False) -> str | None:
    """Return what a file with this beginning is, and what to do; None: it may be text.

    `piped`: the input is standard input, which has no file name.
    """
    if not _BINARY.match(beginning):
        return None
    for magic, name, suffix, unpack in _COMPRESSIONS:
        if beginning.startswith(magic):
            return f"is compressed by {name}{_advice(suffix, unpack, piped=piped)}"
    for magic, words in _KINDS:
        if beginning.startswith(magic):
            or_named = "" if piped else ", or a name that ends in .parquet"
            return words.format(format=input_option("format"), or_named=or_named)
    return None


def _advice(suffix: str, unpack: str, *, piped: bool) -> str:
    if piped:
        return f": unpack it in the pipe ({unpack} FILE | ringhaul ...)"
    if suffix:
        return f": give it a name that ends in {suffix}, or unpack it"
    return f", which is not supported: unpack it, also in a pipe ({unpack} FILE | ringhaul ... -)"
