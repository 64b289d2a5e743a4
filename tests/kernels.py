"""Bring compiled kernels to where the processes of a test would compile them again, for 20 s of CPU
time. What no other test has compiled so far is compiled there.

numba's cached code is valid for the same text of the source, wherever that is.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.arrows import ROOT

_CACHED = ("*.nbi", "*.nbc")


def bring_to_package(packages: Path) -> None:
    """Put them beside the sources of an installed copy of `ringhaul`, in this folder."""
    for file in _compiled():
        target = packages / file.relative_to(ROOT)
        if target.parents[1].is_dir():
            target.parent.mkdir(exist_ok=True)
            shutil.copy(file, target)


def bring_to_cache(folder: Path) -> None:
    """Put those of this checkout's sources into a folder for NUMBA_CACHE_DIR."""
    for file in _compiled():
        source = file.parents[1]
        # As numba names it.
        place = folder / f"{source.name}_{hashlib.sha1(str(source).encode()).hexdigest()}"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)


def _compiled() -> Iterator[Path]:
    """Yield the files of numba's cache beside this checkout's sources."""
    for folder in (ROOT / "ringhaul").rglob("__pycache__"):
        for pattern in _CACHED:
            yield from folder.glob(pattern)
