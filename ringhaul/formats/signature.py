"""What a file is that was taken for text: told by its first bytes."""

import re
from collections.abc import Callable

#: Of a file, to know it by: no more is looked at.
LOOK_BYTES = 64
#: Where a text could begin so, too, the bytes that follow must be none of a text's.
_BINARY = re.compile(rb"[\s\S]{0,60}[\x00-\x08\x0e-\x1f]")
#: How compressed files begin -> by what, the suffix of those that are read, and what unpacks them.
_COMPRESSIONS: tuple[tuple[bytes, str, str, str], ...] = (
    (b"\x1f\x8b", "gzip", ".gz", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", ".zst", "zstd -dc"),
    (b"\xfd7zXZ\0", "xz", ".xz", "xz -dc"),
    (b"BZh", "bzip2", ".bz2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "", "lz4 -dc"),
    (b"\xff\x06\0\0sNaPpY", "snappy", "", "snzip -dc"),
)
#: How other files begin -> what they are, and what to do.
_KINDS: tuple[tuple[bytes, str], ...] = (
    (
        b"PK\x03\x04",
        "is a ZIP archive, as Excel workbooks are: unpack it, or save the workbook as CSV",
    ),
    (b"\xd0\xcf\x11\xe0", "is an Office document, such as a workbook: save it as CSV"),
    (b"PAR1", "is a Parquet file: give {format} parquet{or_named}"),
    (b"ORC", "is an ORC file, which is not read: write it as Parquet or CSV"),
    (b"Obj\x01", "is an Avro file, which is not read: write it as Parquet or CSV"),
)


def binary_kind(
    beginning: bytes, option: Callable[[str], str], *, piped: bool = False
) -> str | None:
    """What a file that begins so is, and what to do, in words; None: it may be text.

    `option`: how the running command calls an option about its input. `piped`: it is standard
    input, which has no name to go by.
    """
    if not _BINARY.match(beginning):
        return None
    for magic, name, suffix, unpack in _COMPRESSIONS:
        if beginning.startswith(magic):
            return f"is compressed by {name}{_advice(suffix, unpack, piped=piped)}"
    for magic, words in _KINDS:
        if beginning.startswith(magic):
            or_named = "" if piped else ", or a name that ends in .parquet"
            return words.format(format=option("format"), or_named=or_named)
    return None


def _advice(suffix: str, unpack: str, *, piped: bool) -> str:
    if piped:
        return f": unpack it in the pipe ({unpack} FILE | ringhaul ...)"
    if suffix:
        return f": give it a name that ends in {suffix}, or unpack it"
    return ", which is not read: unpack it"
