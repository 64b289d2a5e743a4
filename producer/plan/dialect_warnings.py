"""Warn about a file that does not look as if it were written in the chosen dialect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from producer.plan.files import first_block, first_fields
from producer.plan.short_header import short_header
from producer.request.load import LoadRequest
from ringhaul.cluster.schema import TableSchema
from ringhaul.formats.dialect_warnings import find_warnings
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.split import Position
from ringhaul.records.job import LoadSource


def dialect_warnings(
    request: LoadRequest, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return the warnings about the records of the first CSV file that are loaded first; the others
    are assumed to be like it. `table`: see `short_header`."""
    for source in sources:
        if source.format != "csv":
            continue
        with suppress(SourceEmpty):  # there may be files of other formats beside it
            skips = source is sources[0] or request.rows_per_file
            request = request if skips else replace(request, skip_rows=0)
            warnings = _warnings(request, source, table)
            return [f"warning: {source.file.path}: {warning}" for warning in warnings]
    return []


def _warnings(request: LoadRequest, source: LoadSource, table: TableSchema) -> Sequence[str]:
    warnings = []
    if request.header_at is None:  # otherwise the first lines are titles
        block = first_block(source.file, request.dialect, request.skip_rows + request.header)
        warnings = find_warnings(block, request.dialect)
        fields = next(first_fields(block, request.dialect), ())
        if not request.header or len(fields) != len(source.fields) + 1:
            return warnings
    start = Position(source.start_offset_bytes, 0, source.start_line)
    found = short_header(request, source.file, source.fields, start, table)
    return [*warnings, found] if found else warnings
