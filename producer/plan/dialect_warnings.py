"""Warn about a file that does not look as if it were written in the chosen dialect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from producer.plan.files import first_fields
from producer.plan.heads import KEEP_FIRST_BYTES, Heads, SourceHead
from producer.plan.short_header import short_header
from producer.request.input_draft import InputDraft
from ringhaul.cluster.schema import TableSchema
from ringhaul.formats.dialect_warnings import find_warnings
from ringhaul.formats.encoding_warnings import find_encoding_warnings
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.split import Position
from ringhaul.records.job import LoadSource
from ringhaul.storage.access import is_url

#: How much of a file is examined for characters that are unlikely in its encoding.
_LOOK_BYTES = KEEP_FIRST_BYTES
_REMOTE_LOOK_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20


def dialect_warnings(
    request: InputDraft, heads: Heads, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return the warnings about the records of the first file of text that are loaded first; the
    other files are assumed to be like it. `table`: see `short_header`."""
    found = _of_dialect(request, heads, sources, table)
    if request.dialect.decoding == "block":
        texts = (source.file for source in sources if source.format != "parquet")
        found += [line for file in islice(texts, 1) for line in _of_encoding(request, heads[file])]
    return found


def _of_dialect(
    request: InputDraft, heads: Heads, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    for source in sources:
        if source.format != "csv":
            continue
        with suppress(SourceEmpty):  # there may be files of other formats beside it
            skips = source is sources[0] or request.bounds_per_source
            request = request if skips else replace(request, skip_rows=0)
            warnings = _warnings(request, heads[source.file], source, table)
            return [f"warning: {source.file.path}: {warning}" for warning in warnings]
    return []


def _warnings(
    request: InputDraft, head: SourceHead, source: LoadSource, table: TableSchema
) -> Sequence[str]:
    warnings = []
    if request.header_at is None:  # otherwise the first lines are titles
        block = head.first_block(request.dialect, request.skip_rows + request.header)
        warnings = find_warnings(block, request.dialect)
        fields = next(first_fields(block, request.dialect), ())
        if not request.header or len(fields) != len(source.fields) + 1:
            return warnings
    start = Position(source.start_offset_bytes, 0, source.start_line)
    found = short_header(request, head, source.fields, start, table)
    return [*warnings, found] if found else warnings


def _of_encoding(request: InputDraft, head: SourceHead) -> list[str]:
    left = _REMOTE_LOOK_BYTES if is_url(head.file.path) else _LOOK_BYTES
    pieces = []
    with head.text(request.dialect) as stream:
        while left > 0 and (piece := stream.read(min(left, _PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece)
    warnings = find_encoding_warnings(b"".join(pieces), request.dialect)
    return [f"warning: {head.file.path}: {warning}" for warning in warnings]
