"""The folders through which SSTables reach nodes.

A call of an import has a folder to itself, `FOLDER/JOB/ID/KEYSPACE/TABLE`: nodes of some versions
take the table from its name. Everything in FOLDER gets the permissions of FOLDER, as a node usually
runs as another user: it must be able to read the files, and to move them away.
"""

from __future__ import annotations

import glob
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ringhaul.errors import OutputUnavailable, OutputUnusable
from ringhaul.sstables.build import Contents
from ringhaul.sstables.components import DATA, TOC, file_name, toc_bytes
from ringhaul.sstables.version import SSTableVersion
from ringhaul.storage.access import check_place
from ringhaul.storage.sorting import is_lasting
from ringhaul.streaming.owners import Node

#: Stands for a node's address in the name of a folder.
NODE = "{node}"
_PIECE_BYTES = 2**20
#: Permissions that are passed on, with the bit that makes files inherit the group.
_MODE = 0o2777


@dataclass(frozen=True, kw_only=True)
class ImportFolders:
    """Where the files of one job go, for each node."""

    folder: str  #: absolute path as this host sees it; may have `NODE`
    node_folder: str  #: the folder's path as nodes see it
    keyspace: str
    table: str
    job_id: str

    def new(self, node: Node) -> Drop:
        """Create a folder for one call of a node's import.

        Raises `OutputUnusable`, `OutputUnavailable`, and `OutsideRoots` for a folder that this host
        does not open for jobs.
        """
        base = self.folder.replace(NODE, node.address)
        check_place(base)
        parts = (self.job_id, uuid.uuid4().hex[:12], self.keyspace, self.table)
        seen = os.path.join(self.node_folder.replace(NODE, node.address), *parts)
        try:
            mode = _base_mode(base, is_made=NODE in os.path.basename(self.folder))
            path = base
            for part in parts:
                path = os.path.join(path, part)
                if not os.path.isdir(path):
                    with suppress(FileExistsError):  # another process made the job's
                        os.mkdir(path)
                        os.chmod(path, mode)
        except OSError as error:
            raise _failed(base, error) from error
        return Drop(path=path, seen=seen, top=os.path.dirname(os.path.dirname(path)), mode=mode)


@dataclass(frozen=True, kw_only=True)
class Drop:
    """A folder for one call of an import."""

    path: str
    seen: str  #: `path` as the node sees it
    top: str  #: what `remove` removes
    mode: int  #: permissions of folders

    def write(
        self,
        version: SSTableVersion,
        components: Sequence[tuple[str, Contents]],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Write an SSTable, its list of components last. Returns once all is on the disk.

        `components`: without that list. `check` is called for each MiB, and may raise. Raises
        `OutputUnusable` or `OutputUnavailable`.
        """
        listed = toc_bytes(name for name, _ in components)
        try:
            for name, contents in (*components, (TOC, listed)):
                self._write(file_name(version, 1, name), contents, check)
            handle = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise _failed(self.path, error) from error

    def _write(self, name: str, contents: Contents, check: Callable[[], None]) -> None:
        with open(os.path.join(self.path, name), "xb") as file:
            os.fchmod(file.fileno(), self.mode & 0o666)
            for start in range(0, len(contents), _PIECE_BYTES):
                check()
                file.write(contents[start : start + _PIECE_BYTES])
            file.flush()
            os.fsync(file.fileno())

    def withdraw(self, version: SSTableVersion) -> bool:
        """Remove Data.db, which a node moves last; return whether it was still there.

        To look for it would ask this host's cache: over NFS that keeps a moved file for a minute.
        """
        try:
            os.unlink(os.path.join(self.path, file_name(version, 1, DATA)))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(self.path, error) from error
        return True

    def remove(self) -> None:
        """Remove what is left. A node that is about to move the files gives the import up."""
        shutil.rmtree(self.top, ignore_errors=True)


def remove_job_folders(folder: str, job_id: str) -> None:
    """Remove what attempts of an ended job have left that were killed.

    `folder`: may have `NODE`. Raises `OutsideRoots` as `ImportFolders.new` does.
    """
    for base in glob.glob(glob.escape(folder).replace(NODE, "*")):
        check_place(base)
        shutil.rmtree(os.path.join(base, job_id), ignore_errors=True)


def _base_mode(base: str, *, is_made: bool) -> int:
    """Return the permissions of a node's folder. It is created if only its last part is missing and
    `is_made`: a folder that is not mounted must not fill the disk below it."""
    if is_made and not os.path.isdir(base):
        mode = _mode(os.path.dirname(base))
        with suppress(FileExistsError):
            os.mkdir(base)
            os.chmod(base, mode)
    return _mode(base)


def _mode(folder: str) -> int:
    return stat.S_IMODE(os.stat(folder).st_mode) & _MODE


def _failed(folder: str, error: OSError) -> OutputUnusable | OutputUnavailable:
    if isinstance(error, FileNotFoundError):
        return OutputUnusable(
            f"{folder} is not there: create it on a disk that this host shares with the nodes, or "
            "mount it (imports.folder)"
        )
    kind = OutputUnusable if is_lasting(error) else OutputUnavailable
    return kind(f"cannot write SSTables to {folder}: {error.strerror}")
