"""Find the members of zip archives, and say which files are one unit."""

from __future__ import annotations

import os
import stat

from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.compression import check_compression
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.suffixes import compression_of, format_of
from ringhaul.formats.zip_directory import find_members, member_path
from ringhaul.formats.zip_member import STORED, ZipMember
from ringhaul.sources.files import open_stored
from ringhaul.sources.source import Archive, SourceFile
from ringhaul.storage.access import mask_url
from ringhaul.storage.file_version import version_text
from ringhaul.storage.remote import RemoteFile


def find_packed(
    path: str,
    file: RemoteFile | None,
    wanted: str | None,
    dialect: CsvDialect,
    file_format: str,
) -> list[SourceFile]:
    """Return the members of an archive that `wanted` names, see `find_members`.

    `file`: the archive, if it is behind a URL. Raises as `find_members` does.
    """
    if file is not None and not file.ranges:
        raise UsageError(
            f"{mask_url(path)}: its server does not serve parts of a file, which zip needs; "
            "download it first"
        )
    if file is None:
        try:
            status = os.stat(path)
        except OSError as error:
            raise SourceMissing(f"{path}: {error.strerror or error}") from error
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{path}: not a regular file, which a zip archive has to be")
        archive = SourceFile(path, status.st_size, False, version_text(status))
    else:
        archive = SourceFile(path, file.size_bytes, False, file.version)
    with open_stored(archive, 0) as opened:
        members = find_members(opened, mask_url(path), wanted)
    return [_source(archive, member, dialect, file_format) for member in members]


def _source(
    archive: SourceFile, member: ZipMember, dialect: CsvDialect, file_format: str
) -> SourceFile:
    path = member_path(archive.path, member.name)
    found_format = format_of(path, file_format)
    if found_format == "parquet":
        raise UsageError(
            f"{mask_url(path)}: Parquet is read at many places, which a member of an archive is "
            "not: unpack it first"
        )
    return SourceFile(
        path,
        member.size_bytes,
        is_whole(path, dialect, found_format) or member.method != STORED,
        archive.version,
        Archive(archive.path, archive.size_bytes, member),
    )


def is_whole(path: str, dialect: CsvDialect, file_format: str) -> bool:
    """Return whether a file can only be read from its beginning to its end. Raises `UsageError` for
    a compression that is not read."""
    compression = compression_of(path)
    if file_format == "parquet" and compression:
        raise UsageError(f"{path}: a Parquet file is compressed within; unpack it first")
    check_compression(compression, path)
    return bool(compression) or (file_format != "parquet" and dialect.decoding == "stream")
