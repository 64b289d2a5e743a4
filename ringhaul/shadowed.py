"""Find packages of other software that have the names of ours, which are common words.

Python imports the first one on its path, so `config` in a folder of PYTHONPATH hides ours. This
uses only the standard library and no other package of ours: any of them may be the hidden one.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import NamedTuple

NAMES = ("ringhaul", "config", "tasks", "producer")
#: The folder that holds our packages.
HOME = Path(__file__).resolve().parent.parent


class Shadow(NamedTuple):
    """A package that Python imports instead of ours."""

    name: str
    path: str  #: of the other package


def hidden_packages(home: Path = HOME) -> list[Shadow]:
    """Return which of our packages are hidden by others. Imports none of them."""
    found = []
    for name in NAMES:
        place = _place(importlib.util.find_spec(name))
        if place is None or place.resolve() != home / name:
            found.append(Shadow(name, str(place or "nowhere")))
    return found


def _place(spec: ModuleSpec | None) -> Path | None:
    """Return the folder of a package, or the file of a module that is no package."""
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    if folders:
        return Path(folders[0])
    return Path(spec.origin) if spec.origin else None


def installed_twice() -> list[tuple[str, str]]:
    """Return (package, distribution) for each other distribution in this environment that installs
    a package of the same name. Its files and ours may have replaced each other."""
    found = []
    for distribution in importlib.metadata.distributions():
        names = set(_top_level(distribution.read_text("RECORD") or ""))
        if shared := names.intersection(NAMES):
            title = distribution.metadata["Name"]
            if title != "ringhaul":
                found += [(name, title) for name in sorted(shared)]
    return found


def _top_level(record: str) -> Iterator[str]:
    """Yield the first folder of each file that RECORD lists."""
    return (line.partition("/")[0] for line in record.splitlines() if "/" in line)
