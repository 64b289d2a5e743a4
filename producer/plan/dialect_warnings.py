"""Warn about a file that does not look as if it were written in the chosen dialect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from producer.plan.files import first_block
from producer.request.load import LoadRequest
from ringhaul.formats.dialect_warnings import find_warnings
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.suffixes import format_of
from ringhaul.sources.source import SourceFile


def dialect_warnings(request: LoadRequest, files: Sequence[SourceFile]) -> list[str]:
    """Return the warnings about the first records that are loaded of the first CSV file; the others
    are assumed to be like it."""
    if request.header_at is not None:
        return []  # the first lines are titles
    for file in files:
        if format_of(file.path, request.file_format) != "csv":
            continue
        with suppress(SourceEmpty):  # there may be files of other formats beside it
            skips = file is files[0] or request.rows_per_file
            skip = (request.skip_rows if skips else 0) + request.header
            warnings = find_warnings(first_block(file, request.dialect, skip), request.dialect)
            return [f"warning: {file.path}: {warning}" for warning in warnings]
    return []
