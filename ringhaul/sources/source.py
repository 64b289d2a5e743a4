"""A file to read, as a job names it."""

from __future__ import annotations

from typing import NamedTuple


class SourceFile(NamedTuple):
    """A file to read."""

    #: Absolute, or a URL.
    path: str
    #: Size of the file as stored.
    size_bytes: int
    #: Whether it can only be read from its beginning to its end: one unit.
    whole: bool
    #: For a URL: see `storage.remote.RemoteFile`.
    version: str = ""
