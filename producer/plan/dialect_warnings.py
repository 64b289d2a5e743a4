"""Warn about a file that does not look as if it were written in the chosen dialect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from producer.plan.files import first_block
from producer.request.load import LoadRequest
from ringhaul.formats.dialect_warnings import find_warnings
from ringhaul.formats.encoding_warnings import find_encoding_warnings
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.suffixes import format_of
from ringhaul.sources.files import open_whole
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url

#: How much of a file is examined for characters that are unlikely in its encoding.
_LOOK_BYTES = 16 << 20
_REMOTE_LOOK_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20


def dialect_warnings(request: LoadRequest, files: Sequence[SourceFile]) -> list[str]:
    """Return the warnings about the first file of text; the others are assumed to be like it."""
    found = _of_dialect(request, files)
    if request.dialect.decoding == "block":
        texts = (file for file in files if _format(request, file) != "parquet")
        found += [line for file in islice(texts, 1) for line in _of_encoding(request, file)]
    return found


def _format(request: LoadRequest, file: SourceFile) -> str:
    return format_of(file.path, request.file_format)


def _of_dialect(request: LoadRequest, files: Sequence[SourceFile]) -> list[str]:
    if request.header_at is not None:
        return []  # the first lines are titles
    for file in files:
        if _format(request, file) != "csv":
            continue
        with suppress(SourceEmpty):  # there may be files of other formats beside it
            warnings = find_warnings(first_block(file, request.dialect), request.dialect)
            return [f"warning: {file.path}: {warning}" for warning in warnings]
    return []


def _of_encoding(request: LoadRequest, file: SourceFile) -> list[str]:
    left = _REMOTE_LOOK_BYTES if is_url(file.path) else _LOOK_BYTES
    pieces = []
    with open_whole(file, request.dialect) as stream:
        while left > 0 and (piece := stream.read(min(left, _PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece)
    warnings = find_encoding_warnings(b"".join(pieces), request.dialect)
    return [f"warning: {file.path}: {warning}" for warning in warnings]
