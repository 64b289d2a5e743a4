"""Which files have arrived whole and are not loaded yet.

A file is known by its path. What it held when it was loaded is remembered: size, stamp (its time of
change, or the ETag of an object) and checksum. A file of the same size and stamp is the same; one
that differs in either is read for its checksum, and is loaded again only if that differs, too.

A file is taken once its size and stamp have been the same for a while, at two looks at least: one
that is still being written waits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple


class Listed(NamedTuple):
    """A file as a folder lists it."""

    path: str
    size_bytes: int
    stamp: str


class Arrived(NamedTuple):
    """A file that is to be loaded, as it was when its checksum was taken."""

    path: str
    size_bytes: int
    stamp: str
    checksum: str

    @property
    def listed(self) -> Listed:
        """As the folder listed it."""
        return Listed(self.path, self.size_bytes, self.stamp)


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """What the ledger knows of a file; a hash field of the path."""

    size_bytes: int
    stamp: str
    checksum: str
    state: str  #: LOADED, FAILED or ALONE
    run: str  #: The run that says so.
    ms: int  #: When it did.
    gone_ms: int | None = None  #: Since when it is not listed any more, as far as anybody saw.

    def pack(self) -> str:
        words = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(words, separators=(",", ":"))

    @classmethod
    def unpack(cls, text: str) -> Remembered:
        return cls(**json.loads(text))

    def is_of(self, file: Listed) -> bool:
        """Whether the file looks as it did then."""
        return (self.size_bytes, self.stamp) == (file.size_bytes, file.stamp)


#: A file that is not there any more is forgotten when it was gone for so long.
REMEMBER_MS = 90 * 86_400_000
#: Loaded, and not to be loaded again while it is the same.
LOADED = "loaded"
#: Could not be loaded: not tried again by itself while it is the same.
FAILED = "failed"
#: Was in a run of several files that failed: the next run of it has no other file.
ALONE = "alone"


def remember(
    files: Iterable[Arrived], run: str, now_ms: int, *, loaded: bool
) -> dict[str, Remembered]:
    """What is to be remembered of the files of a run, by path.

    Of several that could not be loaded, one may be to blame: each is tried alone then.
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
    """Remembers since when files have been as they are. One for each schedule and beat."""

    def __init__(self, settle_ms: int) -> None:
        self._settle_ms = settle_ms
        self._since: dict[str, tuple[Listed, int]] = {}

    def look(self, listed: Iterable[Listed], now_ms: int) -> list[Listed]:
        """The files that have been the same for long enough. `now_ms`: a clock that only goes on.

        Files that are not listed any more are forgotten.
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
    """The files that may have to be loaded: new ones, and those that look otherwise than they did.

    `failed_too`: and those that could not be loaded, although they are the same.
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
    """Whether a file that looks otherwise holds what was loaded, or failed, before."""
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
    """The files of the next run: several, or one that is to be tried alone; of those the one whose
    last try is the longest ago.

    `alone_first`: it is the turn of one that is to be tried alone. With turns neither kind waits
    until there is none of the other, which may be never.
    """
    ordered = sorted(files)
    together = [file for file in ordered if not is_alone(file, known)][:files_max]
    waiting = [file for file in ordered if is_alone(file, known)]
    alone = sorted(waiting, key=lambda file: known[file.path].ms)[:1]
    return alone or together if alone_first else together or alone


def is_alone(file: Listed, known: Mapping[str, Remembered]) -> bool:
    """Whether the file is to be tried alone."""
    before = known.get(file.path)
    return before is not None and before.state == ALONE and before.is_of(file)
