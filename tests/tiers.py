"""The two tiers of tests: what is slow stands in `tests/proofs.toml`, with what proves it quickly.

An entry names a folder, a file or a single test:

    [[slow]]
    tests = "tests/acceptance/test_installed.py"
    quick = ["tests/acceptance/test_installed.py::test_a"]  # what of it is quick all the same
    proved_by = ["tests/unit/test_requirements.py"]  # runs in the quick tier
    reason = "..."  # what only the slow test proves; needed where nothing stands in
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROOFS = Path("tests/proofs.toml")
TIERS = ("all", "quick", "slow")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Slow tests, and what stands in for them."""

    tests: str  #: a folder, a file, or a test's id
    quick: tuple[str, ...] = ()  #: files or ids of tests among them that are quick
    proved_by: tuple[str, ...] = ()  #: files or ids of tests of the quick tier
    reason: str = ""

    def holds(self, nodeid: str) -> bool:
        """Return whether a test, or all of a file or folder, is slow by this entry."""
        return _is_in(nodeid, self.tests) and not any(_is_in(nodeid, name) for name in self.quick)

    def has_both(self, file: str) -> bool:
        """Return whether some tests of a file are slow by this entry, and some are not."""
        if self.tests.startswith(f"{file}::"):
            return True
        return _is_in(file, self.tests) and any(n.startswith(f"{file}::") for n in self.quick)


def entries(root: Path = ROOT) -> list[Entry]:
    """Read the entries of `tests/proofs.toml`. Raises `TypeError` for an unknown key."""
    found = tomllib.loads((root / PROOFS).read_text())["slow"]
    return [
        Entry(**{k: v if isinstance(v, str) else tuple(v) for k, v in e.items()}) for e in found
    ]


class Tier:
    """The tests that run in a tier: one of `TIERS`."""

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self._name = name
        self._root = root
        self._slow = [] if name == "all" else entries(root)

    def has(self, nodeid: str) -> bool:
        """Return whether a test runs in this tier."""
        if self._name == "all":
            return True
        slow = any(entry.holds(nodeid) for entry in self._slow)
        return slow is (self._name == "slow")

    def leaves_out(self, file: Path) -> bool:
        """Return whether no test of a file runs in this tier."""
        if self._name == "all" or not file.is_relative_to(self._root):
            return False
        path = str(file.relative_to(self._root))
        if not file.name.startswith("test_") or any(e.has_both(path) for e in self._slow):
            return False
        slow = any(entry.holds(path) for entry in self._slow)
        return slow is (self._name == "quick")


def mistakes(root: Path = ROOT) -> list[str]:
    """Return what is wrong with the entries, a line each."""
    listed = entries(root)
    found = [f"{entry.tests}: no such test" for entry in listed if not _exists(root, entry.tests)]
    for entry in listed:
        if not entry.quick and not entry.proved_by and not entry.reason:
            found.append(f"{entry.tests}: neither quick tests, proved_by nor a reason")
        for test in entry.quick:
            if not _is_in(test, entry.tests) or test == entry.tests:
                found.append(f"{entry.tests}: {test} is no part of it")
        for proof in (*entry.quick, *entry.proved_by):
            if not _exists(root, proof):
                found.append(f"{entry.tests}: no such test: {proof}")
            elif any(other.holds(proof) for other in listed):
                found.append(f"{entry.tests}: {proof} is slow itself")
    names = [entry.tests for entry in listed]
    found += [f"{name}: listed twice" for name in sorted({n for n in names if names.count(n) > 1})]
    return found


def _is_in(nodeid: str, part: str) -> bool:
    """Return whether a test, file or folder is `part`, or in it."""
    return nodeid.startswith(part) and nodeid[len(part) : len(part) + 1] in ("", "/", ":", "[")


def _exists(root: Path, test: str) -> bool:
    """Return whether a folder, a file, or a test function in its file exists."""
    path, _, name = test.partition("::")
    if not name:
        return (root / path).exists()
    function = name.partition("[")[0]
    file = root / path
    return file.is_file() and f"def {function}(" in file.read_text()
