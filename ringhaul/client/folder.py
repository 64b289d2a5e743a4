"""Where tables are files for a moment: between a call and its command.

A call gets a folder of its own, which is removed at its end. The table of a call with a `job_id`
has a name that follows from its content, so that repeating the call names the same file: the
command refuses another file under the same id.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringhaul.client.errors import ClientError, UsageError

_CALL, _LOCK, _NAMED = "call-", "lock", "named"
#: Seconds after which files without a lock, which a killed program left behind, are removed.
LEFT_BEHIND_S = 86_400.0


class Folder:
    """The folder of one client. `shared`: all workers read and write in it, so it keeps the rights
    that it has; else it is in the user's temporary folder, for this user alone."""

    def __init__(self, shared: Path | None = None) -> None:
        self.is_shared = shared is not None
        self._base = shared or Path(tempfile.gettempdir()) / f"ringhaul-client-{os.getuid()}"

    @contextmanager
    def of_call(self) -> Iterator[Path]:
        """Yield an empty folder, which is removed at the end of the block."""
        base, folder = self._new_folder()
        if self.is_shared:
            folder.chmod(stat.S_IMODE(base.stat().st_mode))
        try:
            with (folder / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._remove_if_empty()

    def _new_folder(self) -> tuple[Path, Path]:
        """Return the base and a new folder in it."""
        while True:
            base = self._checked_base()
            _remove_left_behind(base)
            with suppress(FileNotFoundError):  # the last other call has just removed the base
                return base, Path(tempfile.mkdtemp(prefix=_CALL, dir=base))

    def _remove_if_empty(self) -> None:
        """Remove the base after its last call; a shared base is not ours."""
        if not self.is_shared:
            with suppress(OSError):
                self._base.rmdir()

    @contextmanager
    def named(self, path: Path) -> Iterator[Path]:
        """Yield the path of a file with this content, under a name that follows from the content.

        Several calls may use the file at the same time; the last call removes it. After an error
        that may go away it stays for a day: the job is not done, and the call that finishes the job
        needs this very file.
        """
        target = self._checked_base() / _NAMED / f"{_digest(path)}.parquet"
        while True:
            with suppress(FileNotFoundError):  # its last other user has just removed the folder
                self._make(target.parent)
                held = _hold(path, target)
                break
        kept = False
        try:
            yield target
        except ClientError as error:
            kept = error.transient
            raise
        finally:
            with suppress(BlockingIOError):  # another call uses it
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not kept:
                    target.unlink(missing_ok=True)
            os.close(held)
            with suppress(OSError):  # others are in it
                target.parent.rmdir()
            self._remove_if_empty()

    def _make(self, folder: Path) -> None:
        """Make the folder of named tables, in the base."""
        self._checked_base()
        folder.mkdir(mode=0o700, exist_ok=True)
        if self.is_shared:
            folder.chmod(stat.S_IMODE(self._base.stat().st_mode))

    def shown(self, file: str) -> str:
        """Return what a caller calls a file: the path, or for one in this folder the table."""
        path = Path(file)
        made = path.parent.name == _NAMED or path.parent.name.startswith(_CALL)
        return "the table" if made and path.parent.parent == self._base.absolute() else file

    def _checked_base(self) -> Path:
        """Return the folder, made if need be. Raises `UsageError` if others could write to it."""
        if self.is_shared:
            if not self._base.is_dir():
                raise UsageError(f"shared_folder {self._base}: there is no such folder")
            return self._base.absolute()
        with suppress(FileExistsError):
            self._base.mkdir(mode=0o700)
        found = self._base.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if not ours or found.st_mode & 0o077:
            raise UsageError(
                f"{self._base} is not a folder of this user alone: remove it, or set TMPDIR"
            )
        return self._base


def _hold(path: Path, target: Path) -> int:
    """Give the file its name, unless a file of this name exists; return a shared lock on it."""
    while True:
        with suppress(FileExistsError):
            os.link(path, target)
        try:
            held = os.open(target, os.O_RDONLY)
        except FileNotFoundError:  # its last user has just removed it
            continue
        fcntl.flock(held, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), target.stat()):
                return held
        os.close(held)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _remove_left_behind(base: Path) -> None:
    """Remove the folders of calls whose program was killed."""
    for folder in base.glob(f"{_CALL}*"):
        with suppress(OSError):
            old = time.time() - folder.stat().st_mtime > LEFT_BEHIND_S
            if old or _is_free(folder / _LOCK):
                shutil.rmtree(folder, ignore_errors=True)
    for file in (base / _NAMED).glob("*.parquet"):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > LEFT_BEHIND_S and _is_free(file):
                file.unlink()


def _is_free(path: Path) -> bool:
    """Return whether a file exists and is not locked."""
    with suppress(OSError), path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
