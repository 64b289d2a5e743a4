"""Make one file of the parts of an unload, which then appears at once under its name.

Parts lie in a hidden folder beside the file. They are put one after the other in the order of their
tokens, a piece at a time, into a temporary file that is renamed when it is complete. A note in the
folder then says what the file holds, so that any command can repeat the rest after a crash.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.output.job import Output
from ringhaul.output.parts import CHECKSUM, Measured, PartInfo
from ringhaul.storage.folders import Folder, open_folder

#: The note in the folder of the parts: the file is complete.
_NOTE = "joined.json"


def parts_folder(file: str, job: str) -> str:
    """Return the hidden folder for the parts of a file, beside it."""
    folder, name = posixpath.split(file)
    return posixpath.join(folder, f".{name}.{job}")


def file_exists(file: str) -> bool:
    """Return whether there is a file under a path or a URL."""
    folder, name = posixpath.split(file)
    return name in open_folder(folder).sizes()


def join_parts(
    output: Output, parts: Sequence[PartInfo], names: Sequence[str], types: Sequence[CqlType]
) -> PartInfo:
    """Make `output.file` of the parts, in their order; return what it holds.

    Safe to repeat until `remove_parts`. Raises `OutputUnusable` and `OutputUnavailable`.
    """
    staging = open_folder(output.url)
    note = staging.read(_NOTE)
    if note is not None:
        return PartInfo.from_json(json.loads(note))
    sizes = staging.sizes()
    missing = [part.name for part in parts if sizes.get(part.name) != part.bytes]
    if missing:
        raise OutputUnusable(
            f"{output.url}: {len(missing):,} of {len(parts):,} files that workers wrote are not "
            f"what they were ({missing[0]}). Do all hosts share the folder of {output.file}?"
        )
    folder, name = posixpath.split(output.file)
    file = Measured(open_folder(folder).create(name), CHECKSUM)
    try:
        from ringhaul.output.joined_parts import put_parts  # most unloads make no one file

        put_parts(output, staging, parts, names, types, file)
        file.inner.publish()
    except BaseException:
        file.inner.discard()
        raise
    rows = sum(part.rows for part in parts)
    joined = PartInfo(name=name, rows=rows, bytes=file.bytes, checksum=file.checksum)
    _write_note(staging, joined)
    return joined


def remove_parts(output: Output) -> None:
    """Remove the folder of the parts, if the file is complete. Safe to repeat."""
    staging = open_folder(output.url)
    names = list(staging.sizes())
    if _NOTE not in names:
        return
    for name in sorted(names, key=lambda name: name == _NOTE):  # the note last
        staging.remove(name)
    staging.remove_empty()


def _write_note(staging: Folder, joined: PartInfo) -> None:
    note = staging.create(_NOTE)
    try:
        note.write(json.dumps(joined.to_json()).encode())
        note.publish()
    except BaseException:
        note.discard()
        raise
