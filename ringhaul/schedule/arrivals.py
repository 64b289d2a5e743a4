"""Find the files that have arrived completely and are not loaded yet.

A file is identified by its path. Its size, stamp (modification time, or the ETag of an object) and
checksum are remembered when it is loaded. A file with the same size and stamp counts as unchanged;
a file that differs in either is read for its checksum, and loaded again only if that has changed.

A file is loaded once its size and stamp have not changed for a while, in at least two listings, so
that a file still being written waits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple


class Listed(NamedTuple):
    """A file in the listing of a folder."""

    path: str
    size_bytes: int
    stamp: str


class Arrived(NamedTuple):
    """A file to load, as it was when its checksum was computed."""

    path: str
    size_bytes: int
    stamp: str
    checksum: str

    @property
    def listed(self) -> Listed:
        """The file as in the folder's listing."""
        return Listed(self.path, self.size_bytes, self.stamp)


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """The ledger's record of a file, in a hash with the path as field."""

    size_bytes: int
    stamp: str
    checksum: str
    state: str  #: LOADED, FAILED or ALONE
    run: str  #: The run that set the state.
    ms: int  #: When it was set.
    gone_ms: int | None = None  #: When the file was first found missing from the listing.

    def pack(self) -> str:
        words = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(words, separators=(",", ":"))

    @classmethod
    def unpack(cls, text: str) -> Remembered:
        return cls(**json.loads(text))

    def is_of(self, file: Listed) -> bool:
        """Whether the file still has the recorded size and stamp."""
        return (self.size_bytes, self.stamp) == (file.size_bytes, file.stamp)


#: A file that no longer exists is forgotten after this time.
REMEMBER_MS = 90 * 86_400_000
#: Loaded; not loaded again while unchanged.
LOADED = "loaded"
#: Could not be loaded; not tried again automatically while unchanged.
FAILED = "failed"
#: Was in a run of several files that failed; its next run has no other file.
ALONE = "alone"


def remember(
    files: Iterable[Arrived], run: str, now_ms: int, *, loaded: bool
) -> dict[str, Remembered]:
    """Return the records to store for the files of a run, by path.

    If several files could not be loaded, any file may be the cause, so each is then tried alone.
    """
    files = list(files)
    state = LOADED if loaded else ALONE if len(files) > 1 else FAILED
    return {
        file.path: Remembered(
            size_bytes=file.size_bytes,
            stamp=file.stamp,
            checksum=file.checksum,
            state=state,
            run=run,
            ms=now_ms,
        )
        for file in files
    }


class Settling:
    """Remembers since when each file is unchanged. One for each schedule and beat."""

    def __init__(self, settle_ms: int) -> None:
        self._settle_ms = settle_ms
        self._since: dict[str, tuple[Listed, int]] = {}

    def look(self, listed: Iterable[Listed], now_ms: int) -> list[Listed]:
        """Return the files that have been unchanged for long enough. `now_ms`: a monotonic clock.

        Files that are no longer listed are forgotten.
        """
        settled = []
        seen: dict[str, tuple[Listed, int]] = {}
        for file in listed:
            before = self._since.get(file.path)
            if before is None or before[0] != file:
                seen[file.path] = (file, now_ms)
                continue
            seen[file.path] = before
            if now_ms - before[1] >= self._settle_ms:
                settled.append(file)
        self._since = seen
        return settled


def candidates(
    listed: Iterable[Listed], known: Mapping[str, Remembered], *, failed_too: bool = False
) -> list[Listed]:
    """Return the files that may have to be loaded: new and changed files, and files to try alone.

    `failed_too`: include unchanged files that could not be loaded.
    """
    return [
        file
        for file in listed
        if (before := known.get(file.path)) is None
        or not before.is_of(file)
        or before.state == ALONE
        or (failed_too and before.state == FAILED)
    ]


def same_content(before: Remembered | None, file: Listed, checksum: str) -> bool:
    """Whether a file with another size or stamp holds the content that was loaded, or failed."""
    return (
        before is not None
        and before.state in (LOADED, FAILED)
        and not before.is_of(file)
        and (before.size_bytes, before.checksum) == (file.size_bytes, checksum)
    )


def batch(
    files: Iterable[Listed],
    known: Mapping[str, Remembered],
    files_max: int,
    *,
    alone_first: bool = False,
) -> list[Listed]:
    """Return the files of the next run: several files, or a single file to try alone, namely the
    file whose last try is the longest ago.

    `alone_first`: this run prefers a file to try alone. Callers alternate, so that neither kind of
    file waits until the other kind is used up, which may be never.
    """
    ordered = sorted(files)
    together = [file for file in ordered if not is_alone(file, known)][:files_max]
    waiting = [file for file in ordered if is_alone(file, known)]
    alone = sorted(waiting, key=lambda file: known[file.path].ms)[:1]
    return alone or together if alone_first else together or alone


def is_alone(file: Listed, known: Mapping[str, Remembered]) -> bool:
    """Whether the file must be tried alone."""
    before = known.get(file.path)
    return before is not None and before.state == ALONE and before.is_of(file)
