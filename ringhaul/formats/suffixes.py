"""What a file's name says by its suffixes: its format, and its compression."""

import os

from ringhaul.storage.access import WEB_SCHEMES, is_url, scheme_of, split_url

FORMATS = ("csv", "jsonl", "parquet")
#: Suffixes of compressed files that are read; `compression` has what reads each.
COMPRESSED = (".gz", ".bz2", ".xz", ".lzma", ".zst", ".zstd", ".lz4", ".br")
#: Suffix of an unsupported compression -> its name, and the command that unpacks a file.
UNREAD = {".snappy": ("snappy", "snzip -dc"), ".sz": ("snappy", "snzip -dc")}
#: Suffixes of fixed-width files below a folder. No suffix means this format, whose layout must be
#: given.
FIXED_SUFFIXES = (".txt", ".dat", ".fwf", ".asc")
#: Format -> the suffixes of its files, before the suffix of a compression.
SUFFIXES = {
    "csv": (".csv", ".tsv", ".txt"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet",),
}


def format_of(path: str, file_format: str = "auto") -> str:
    """Return `file_format`, or the format of the file's suffix if "auto"; CSV if unknown."""
    if file_format != "auto":
        return file_format
    suffix = os.path.splitext(plain_name(path))[1]
    return next((name for name, known in SUFFIXES.items() if suffix in known), "csv")


def suffixes_of(file_format: str) -> tuple[str, ...]:
    """Return the suffixes of a format's files; "auto": the suffixes of all `FORMATS`."""
    if file_format == "fixed":
        return FIXED_SUFFIXES
    formats = FORMATS if file_format == "auto" else (file_format,)
    return tuple(suffix for name in formats for suffix in SUFFIXES[name])


def compression_of(path: str) -> str:
    """Return a file's compression suffix, a key of `COMPRESSED` or `UNREAD`; "" if none."""
    suffix = os.path.splitext(_named(path))[1].lower()
    return suffix if suffix in COMPRESSED or suffix in UNREAD else ""


def plain_name(path: str) -> str:
    """Return a path in lower case, without the suffix of a compression."""
    plain = _named(path).lower()
    for suffix in (*COMPRESSED, *UNREAD):
        plain = plain.removesuffix(suffix)
    return plain


def _named(path: str) -> str:
    """Return the part of a path that ends in the suffix: a web server's URL without its query."""
    return split_url(path).path if is_url(path) and scheme_of(path) in WEB_SCHEMES else path
