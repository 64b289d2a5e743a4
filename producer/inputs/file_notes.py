"""Notes about files found for a job that a user may not expect."""

from __future__ import annotations

import os
from collections.abc import Sequence

from producer.notes import Note, warnings
from ringhaul.sources.left_out import find_tables, left_out
from ringhaul.sources.source import SourceFile
from ringhaul.sources.unload_lists import find_unfinished
from ringhaul.storage.access import mask_url
from ringhaul.storage.hidden import MANIFEST


def file_notes(
    sources: Sequence[str], files: Sequence[SourceFile], file_format: str = "auto"
) -> list[Note]:
    """Return notes about the files that `sources` name."""
    paths = [file.path for file in files]
    # A part that is a source itself is as the user wants it.
    given = {os.path.abspath(source) for source in sources}
    lines = [
        f"warning: {mask_url(folder)} has parts of the unload {job} and no {MANIFEST}: that unload "
        f"did not finish (`ringhaul resume {job}` continues it), or the list was not copied with "
        "its files; rows may be missing"
        for folder, job in find_unfinished(path for path in paths if path not in given).items()
    ]
    lines += [
        f"warning: {table} is a table of {table_format}, and its files are read as they are, also "
        "those of older versions: rows that were replaced or deleted may be among them"
        for table, table_format in find_tables(paths).items()
    ]
    notes = warnings(lines)
    if hidden := left_out(sources, file_format):
        more = f" and {len(hidden) - 1:,} more" if len(hidden) > 1 else ""
        text = f"not read: {hidden[0]}{more}, as names with _ count as hidden unless given"
        notes.append(Note(text))
    return notes
