"""Find our packages `config`, `tasks` and `producer`, whatever else has these common names.

A wheel installs them inside this package, so that they replace no one's and no one's replaces them;
in a checkout they are beside it. Every process of ours calls `find_own_packages` before it imports
any of them. This uses only the standard library. See docs/adr/0022.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

NAMES = ("config", "tasks", "producer")
_HERE = Path(__file__).resolve().parent
_INSTALLED = _HERE / "_packages"
#: The folder that holds our packages.
HOME = _INSTALLED if _INSTALLED.is_dir() else _HERE.parent


class _OwnPackages(MetaPathFinder):
    """The first of all finders, for our names only."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or name not in NAMES:
            return None
        return PathFinder.find_spec(name, [str(HOME)])


def find_own_packages() -> None:
    """Make `import config`, `tasks` and `producer` mean ours in this process, from now on.

    Packages of these names that start-up files of the environment have imported stay usable for the
    modules that imported them, but are not found by name any more.
    """
    if not any(isinstance(finder, _OwnPackages) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OwnPackages())
    for name in NAMES:
        loaded = sys.modules.get(name)
        if loaded is not None and not is_own(loaded):
            for one in [one for one in sys.modules if one.partition(".")[0] == name]:
                del sys.modules[one]


def is_own(module: ModuleType) -> bool:
    """Return whether a package with one of our names is ours."""
    spec = module.__spec__
    if spec is None or spec.origin is None:  # a folder without code
        return False
    return Path(spec.origin).resolve().parent.parent == HOME
