"""A file to read, as a job names it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ringhaul.formats.zip_member import ZipMember


class Archive(NamedTuple):
    """Where a member of a zip archive is."""

    path: str  #: the archive's absolute path, or its URL
    size_bytes: int  #: size of the archive as stored
    member: ZipMember

    def to_json(self) -> list[Any]:
        """Return what `from_json` takes."""
        return [self.path, self.size_bytes, list(self.member)]

    @classmethod
    def from_json(cls, data: list[Any]) -> Archive:
        path, size_bytes, member = data
        return cls(path, size_bytes, ZipMember(*member))


class SourceFile(NamedTuple):
    """A file to read."""

    #: Absolute, or a URL. Of a member of an archive `ARCHIVE!MEMBER`, which is only a name.
    path: str
    #: Size of the file as stored; of a member: of its content.
    size_bytes: int
    #: Whether it can only be read from its beginning to its end: one unit.
    whole: bool
    #: See `storage.file_version`; for a URL, `storage.remote.RemoteFile`. A member has its
    #: archive's. Empty: not known, as in jobs of older versions; then sizes alone are compared.
    version: str = ""
    #: The archive in which it is a member; None: it is a file itself.
    archive: Archive | None = None

    @property
    def stored(self) -> SourceFile:
        """The file that is opened to read it: itself, or its archive."""
        if self.archive is None:
            return self
        return SourceFile(self.archive.path, self.archive.size_bytes, False, self.version)
