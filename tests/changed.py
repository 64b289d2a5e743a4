"""The tests to run after a change: `python -m tests.changed` prints them, one to a line.

These are changed unit and property tests, those that import a changed module, and those that
look at the whole tree. Changed files differ from the point where the branch left main (on main:
from HEAD), or are unknown to git.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.arrows import PACKAGES, ROOT, imports_of, module_of

#: Always run: they look at all files.
WHOLE_TREE = ("tests/unit/test_arrows.py", "tests/unit/test_docs.py")
#: The rest of `tests/` needs services.
QUICK = ("tests/unit", "tests/property")


def changed_files(root: Path = ROOT) -> set[str]:
    """Paths of changed and new files, relative to `root`."""
    base = _git(root, "merge-base", "HEAD", "main").strip() or "HEAD"
    names = _git(root, "diff", "--name-only", base) + _git(
        root, "ls-files", "--others", "--exclude-standard"
    )
    return {name for name in names.splitlines() if (root / name).is_file()}


def affected_tests(changed: set[str], root: Path = ROOT) -> list[str]:
    """Paths of the tests to run for these changed files."""
    modules = {
        module_of(root / name, root)
        for name in changed
        if name.endswith(".py") and name.partition("/")[0] in PACKAGES
    }
    found = set(WHOLE_TREE)
    for path in _tests(root):
        name = str(path.relative_to(root))
        if name in changed or modules & {target for _, target in imports_of(path, root)}:
            found.add(name)
    return sorted(found)


def _tests(root: Path) -> Iterator[Path]:
    for folder in QUICK:
        yield from (root / folder).rglob("test_*.py")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    return done.stdout


if __name__ == "__main__":
    print("\n".join(affected_tests(changed_files())))
