"""Import a transform by name, if this host's settings allow it.

A transform is code that runs with all the rights of a worker. So the host that runs transforms
lists which are allowed, never a job; and their modules come from the installed packages or from one
folder, never from the current directory.
"""

from __future__ import annotations

import importlib
import os
import re
import socket
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from ringhaul.errors import UsageError
from ringhaul.option_names import job_option
from ringhaul.own_packages import HOME, NAMES
from ringhaul.transform.chain import Transform
from ringhaul.transform.errors import TransformError, reason_of, rethrow_interrupt
from ringhaul.transform.namesakes import import_namesake, separate_namesakes

_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


def check_names(names: Iterable[str]) -> None:
    """Raise `UsageError` for a name that is not MODULE:FUNCTION."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{job_option('transform')} {name}: give MODULE:FUNCTION, such as etl.people:mask"
            )


def load_transforms(
    names: Sequence[str], allowed: Sequence[str], folder: Path | None
) -> tuple[Transform, ...]:
    """Return the transforms with these names.

    `allowed`: patterns such as `etl:*`; each name must match one. `folder`: searched for modules
    first. Raises `TransformError` that names this host and the setting to check.
    """
    return tuple(_load(name, allowed, folder) for name in names)


def _load(name: str, allowed: Sequence[str], folder: Path | None) -> Transform:
    where = f"transform {name} on host {socket.gethostname()}"
    found = _NAME.fullmatch(name)
    if found is None or not is_allowed(name, allowed):
        listed = ", ".join(allowed) if allowed else "none"
        raise TransformError(
            f"{where} is not allowed: the setting transform.allowed lists {listed}; add it there "
            "and restart the worker"
        )
    try:
        module = _import(found[1], folder)
        function = getattr(module, found[2])
    except BaseException as error:
        rethrow_interrupt(error)
        looked = f"{folder} (transform.path) and " if folder else ""
        raise TransformError(
            f"{where} cannot be imported from {looked}the installed packages: {reason_of(error)}"
        ) from error
    if not callable(function):
        raise TransformError(f"{where} is a {type(function).__name__}, not a function")
    return Transform(name, function)


def is_allowed(name: str, allowed: Sequence[str]) -> bool:
    """Whether a pattern matches the name. A * matches any part of a module's or function's name."""
    module, _, function = name.partition(":")
    for pattern in allowed:
        of_module, _, of_function = pattern.partition(":")
        if fnmatchcase(module, of_module) and fnmatchcase(function, of_function):
            return True
    return False


def _import(name: str, folder: Path | None) -> ModuleType:
    """Import a module; its top-level package comes from `folder` if present there."""
    top = name.partition(".")[0]
    _find_siblings(folder)
    places = [str(folder)] if folder is not None else []
    projects = [project for name in NAMES if (project := _project(_find_editable(name)))]
    # In a checkout, our packages are in a folder of the path.
    others = [one for one in [*_installed(), *projects] if Path(one).resolve() != HOME]
    separate_namesakes([*places, *others])
    if top in NAMES:
        return import_namesake(name)
    loaded = sys.modules.get(top)
    spec = PathFinder.find_spec(top, places)
    if spec is not None and spec.origin is None and top == name:
        spec = None  # a folder of that name without code, such as one of data
    if spec is not None and loaded is not None and _file_of(loaded) != spec.origin:
        raise ImportError(f"another module {top} than {spec.origin} is in use: rename yours")
    if loaded is None:
        spec = spec or PathFinder.find_spec(top, _installed()) or _find_editable(top)
        if spec is None:
            raise ModuleNotFoundError(f"no module named {top}")
        loaded = module_from_spec(spec)
        sys.modules[top] = loaded
        try:
            if spec.loader is not None:  # a package need not have code
                spec.loader.exec_module(loaded)
        except BaseException:
            del sys.modules[top]
            raise
    return importlib.import_module(name)


def _installed() -> list[str]:
    """Return the search path for modules without the current folder, unless PYTHONPATH names it:
    Python itself puts it there, depending on how it is started."""
    here = Path.cwd()
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [entry for entry in sys.path if entry and (Path(entry) != here or entry in named)]


def _find_editable(top: str) -> ModuleSpec | None:
    """Find a package of a project that setuptools installed as editable: it adds a finder, and no
    folder to the path. Other finders may search the current folder."""
    for finder in sys.meta_path:
        if str(getattr(finder, "__module__", "")).startswith("__editable__"):
            spec = finder.find_spec(top, None)
            if spec is not None:
                return spec
    return None


def _project(spec: ModuleSpec | None) -> str | None:
    """Return the folder that holds a package or a module."""
    if spec is None or spec.origin is None:
        return None
    inner = Path(spec.origin).parent
    return str(inner.parent if spec.submodule_search_locations else inner)


def _file_of(module: ModuleType) -> str | None:
    return module.__spec__.origin if module.__spec__ is not None else None


class _Siblings(MetaPathFinder):
    """Finds modules of the folder for imports between them. It is the last finder, so that it hides
    no other module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [str(self.folder)]) if path is None else None


def _find_siblings(folder: Path | None) -> None:
    known = any(isinstance(f, _Siblings) and f.folder == folder for f in sys.meta_path)
    if folder is not None and not known:
        sys.meta_path.append(_Siblings(folder))
