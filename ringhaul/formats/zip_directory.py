"""Read the directory of a zip archive, and choose members to read as files.

Members that ringhaul does not read are refused here, before a job exists: encrypted ones, other
compressions, names that lead elsewhere, two of one name, and what makes a zip bomb.
"""

from __future__ import annotations

import difflib
import fnmatch
import glob
import io
import struct
import zipfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ringhaul.errors import SourceCorrupt, SourceMissing, UsageError
from ringhaul.formats.zip_member import BZIP2, DEFLATED, STORED, ZipMember
from ringhaul.formats.zip_whole import check_whole
from ringhaul.storage.hidden import is_hidden

#: Suffix of archives, in any case, and what separates an archive from a member in a source.
SUFFIX, MARK = ".zip", "!"
#: A larger directory is not read: it takes some ten times as much memory.
DIRECTORY_BYTES_MAX = 32 << 20
#: Deflate packs at most 1,032 bytes into one. Other methods pack more, into unused space.
RATIO_MAX = 1_100
#: Members up to this size may have any ratio.
SMALL_BYTES = 1 << 20
_LOCAL_HEADER_BYTES = 30
_METHODS = {
    1: "shrink",
    6: "implode",
    9: "deflate64",
    14: "lzma",
    93: "zstd",
    95: "xz",
    98: "PPMd",
    99: "AES",
}
#: Bits of a member's flags: encrypted, strongly encrypted, its directory encrypted.
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000


def split_source(source: str) -> tuple[str, str | None]:
    """Return the archive that a source such as `geo.zip!*.txt` names, and which members of it.

    None: no members are named, and the source may be something other than an archive.
    """
    at = source.lower().find(SUFFIX + MARK)
    if at < 0:
        return source, None
    at += len(SUFFIX)
    return source[:at], source[at + len(MARK) :]


def is_archive(path: str) -> bool:
    """Return whether a file is a zip archive by its name."""
    return path.lower().endswith(SUFFIX)


def member_path(archive: str, name: str) -> str:
    """Return the name of a member as a source."""
    return f"{archive}{MARK}{name}"


def find_members(file: io.RawIOBase, path: str, wanted: str | None) -> list[ZipMember]:
    """Return the members of the archive `file` to read, sorted by name.

    `wanted`: the name of a member, or a glob in which `*` also matches `/`; None: all members. A
    glob and None leave out hidden members. `path`: path of the archive, for messages. Raises
    `SourceCorrupt`, `SourceMissing` and `UsageError`.
    """
    every, directory_at = _directory(file, path)
    _refuse_overlaps(every, path)
    check_whole(file, every, directory_at, path)
    files = [info for info in every if not info.is_dir()]
    shown = [info for info in files if not _is_hidden(info.filename)]
    if wanted is None:
        chosen = shown
        if not chosen:
            raise SourceMissing(f"{path}: the archive holds no file")
    else:
        chosen = [info for info in files if info.filename == wanted]
        if not chosen and glob.has_magic(wanted):
            chosen = [info for info in shown if fnmatch.fnmatchcase(info.filename, wanted)]
        if not chosen:
            raise SourceMissing(_missing(files, path, wanted))
    _refuse_twins(chosen, path)
    members = [_member(info, path) for info in chosen]
    return sorted(members, key=lambda member: member.name)


class _Directory(io.BufferedReader):
    """An archive whose directory is not read if it is too large."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > DIRECTORY_BYTES_MAX:
            raise UsageError(
                f"its directory has {size:,} bytes, and at most {DIRECTORY_BYTES_MAX:,} are read: "
                "unpack it"
            )
        return super().read(size)


def _directory(file: io.RawIOBase, path: str) -> tuple[list[zipfile.ZipInfo], int]:
    """Return what the directory lists, and where it begins."""
    reader = _Directory(file)
    try:
        with zipfile.ZipFile(reader) as archive:
            return archive.infolist(), archive.start_dir
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    except zipfile.BadZipFile as error:
        raise SourceCorrupt(
            f"{path}: cannot be read as a zip archive: {error}; it is cut short, damaged, or "
            "misnamed"
        ) from error
    except NotImplementedError as error:
        raise UsageError(f"{path}: {error}: unpack it, or pack it with another program") from error
    except (struct.error, ValueError, EOFError, OverflowError) as error:
        raise SourceCorrupt(
            f"{path}: cannot be read as a zip archive: its directory is damaged ({error})"
        ) from error
    finally:
        reader.detach()  # or it would close the caller's file


def _is_hidden(name: str) -> bool:
    return is_hidden(_parts(name))


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in (".", "..")]


def _missing(files: Sequence[zipfile.ZipInfo], path: str, wanted: str) -> str:
    names = [info.filename for info in files]
    if glob.has_magic(wanted):
        return f"{path}: no member matches {wanted!r} (it has {_listed(names)})"
    close = difflib.get_close_matches(wanted, names, n=1)
    meant = f"; did you mean {member_path(path, close[0])}?" if close else ""
    return f"{path}: has no member {wanted!r}{meant or f' (it has {_listed(names)})'}"


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "no file"
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more


def _refuse_twins(infos: Sequence[zipfile.ZipInfo], path: str) -> None:
    name, count = Counter(info.filename for info in infos).most_common(1)[0]
    if count > 1:
        raise UsageError(
            f"{path}: {count} of its members are named {name!r}: unpack it, or pack it again with "
            "one of them"
        )


def _refuse_overlaps(infos: Sequence[zipfile.ZipInfo], path: str) -> None:
    """Refuse members that share bytes: a small archive would unpack to any size."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    if ordered and ordered[0].header_offset < 0:
        raise SourceCorrupt(
            f"{path}: its member {ordered[0].filename!r} begins before the archive: it is cut "
            "short or damaged"
        )
    for one, other in pairwise(ordered):
        if other.header_offset < one.header_offset + _LOCAL_HEADER_BYTES + one.compress_size:
            raise SourceCorrupt(
                f"{path}: its members {one.filename!r} and {other.filename!r} share bytes, as in a "
                "zip bomb: it is not read"
            )


def _member(info: zipfile.ZipInfo, path: str) -> ZipMember:
    place = member_path(path, info.filename)
    if why := _outside(info.filename):
        raise UsageError(
            f"{path}: the name of its member {info.filename!r} {why}, and members are named like "
            f"files below a folder: name those that you want, as in {member_path(path, '*.csv')}"
        )
    if info.flag_bits & _ENCRYPTED or info.compress_type == 99:
        raise UsageError(f"{place}: is encrypted, which is not supported: unpack it first")
    if info.compress_type not in (STORED, DEFLATED, BZIP2):
        name = _METHODS.get(info.compress_type, "an unknown method")
        raise UsageError(
            f"{place}: is packed by {name} ({info.compress_type}), which is not supported: unpack "
            "it, or pack it by deflate"
        )
    if info.file_size > SMALL_BYTES and info.file_size > RATIO_MAX * info.compress_size:
        raise SourceCorrupt(
            f"{place}: {info.compress_size:,} bytes would unpack to {info.file_size:,}, as in a "
            "zip bomb: it is not read"
        )
    if info.compress_type == STORED and info.compress_size != info.file_size:
        raise SourceCorrupt(
            f"{place}: is not compressed, and has two sizes in the archive's directory: it is "
            "damaged"
        )
    return ZipMember(
        info.filename,
        info.header_offset,
        info.compress_size,
        info.file_size,
        info.compress_type,
        info.CRC,
    )


def _outside(name: str) -> str:
    """Return why a name could mean another place than a file below a folder; empty if it cannot."""
    parts: Any = name.split("/")
    if name.startswith("/") or name[1:2] == ":":
        return "is absolute"
    if ".." in parts:
        return "leads out of the archive"
    if "\\" in name or "://" in name or not name.isprintable():
        return "has \\, :// or control characters"
    return ""
