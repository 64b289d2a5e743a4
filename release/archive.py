"""Source archives of the same bytes each time they are made from the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path


def repack(archive: Path, epoch_s: int) -> None:
    """Write a `.tar.gz` again, without what differs from build to build: times, owners, order.

    Args:
      archive: The file, which is replaced.
      epoch_s: The time of every file, in seconds since 1970.

    Raises OSError, and tarfile.TarError for a file that is no such archive.
    """
    packed = io.BytesIO()
    with (
        tarfile.open(archive) as old,
        gzip.GzipFile("", "wb", 9, packed, mtime=epoch_s) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            content = old.extractfile(member) if member.isreg() else None
            mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            known = member.replace(mtime=epoch_s, mode=mode, uid=0, gid=0, uname="", gname="")
            known.pax_headers = {}  # exact times, and what else a system adds
            new.addfile(known, content)
    archive.write_bytes(packed.getvalue())
