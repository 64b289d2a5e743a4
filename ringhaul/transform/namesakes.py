"""Let users' modules import their own `config`, `tasks` and `producer` in a process of ours.

In a worker, `sys.modules` has ours under these names. Users' packages of the same names are loaded
as parts of a package that exists only in memory, and an `import` statement of a module that is not
ours gets those. See docs/adr/0022.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from ringhaul.own_packages import NAMES

#: The package that holds users' packages of our names: theirs is called `ringhaul_users.config`.
USERS = "ringhaul_users"
#: Packages whose imports of our names mean ours. Celery and its pool import what messages name.
_OURS = frozenset({"__main__", "ringhaul", "billiard", "celery", "kombu", *NAMES})


def separate_namesakes(places: Sequence[str]) -> None:
    """Give users' modules their own packages of our names from now on, from these folders."""
    users = sys.modules.setdefault(USERS, ModuleType(USERS))
    users.__path__ = list(places)
    if not isinstance(builtins.__import__, _Import):
        builtins.__import__ = _Import(builtins.__import__)


def import_namesake(name: str) -> ModuleType:
    """Import a user's module whose package has one of our names, after `separate_namesakes`."""
    top = name.partition(".")[0]
    if _find(top) is None:
        raise ModuleNotFoundError(f"no module named {top}", name=name)
    return importlib.import_module(f"{USERS}.{name}")


class _Import:
    """`__import__` with another meaning of our names in modules that are not ours."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level or top not in NAMES or _is_ours(globals):
            return self._original(name, globals, locals, fromlist, level)  # type: ignore[no-any-return]
        if _find(top) is None:
            raise ModuleNotFoundError(
                f"No module named {top!r} beside the transform or installed; ringhaul's own {top} "
                "is not for transforms",
                name=name,
            )
        found: ModuleType = self._original(f"{USERS}.{name}", globals, locals, fromlist, 0)
        return found if fromlist else sys.modules[f"{USERS}.{top}"]


def _is_ours(globals: Mapping[str, object] | None) -> bool:
    name = (globals or {}).get("__name__")
    return not isinstance(name, str) or name.partition(".")[0] in _OURS


def _find(top: str) -> ModuleSpec | None:
    """Return where the user's package of this name is, if there is one."""
    loaded = sys.modules.get(f"{USERS}.{top}")
    if loaded is not None:
        return loaded.__spec__
    return PathFinder.find_spec(f"{USERS}.{top}", sys.modules[USERS].__path__)
