"""Packages of other software that have the names of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ringhaul.shadowed import hidden_packages, installed_twice


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first on Python's path, and no package of ours that is imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("config", "tasks", "producer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_nothing_is_hidden_here() -> None:
    assert hidden_packages() == []
    assert installed_twice() == []


def test_a_package_a_module_and_a_bare_folder_hide_ours(path: Path) -> None:
    (path / "config").mkdir()
    (path / "config" / "__init__.py").write_text("raise SystemExit('it is not imported')")
    (path / "tasks.py").write_text("raise SystemExit('it is not imported')")
    hidden = {one.name: one.path for one in hidden_packages()}
    assert hidden == {"config": str(path / "config"), "tasks": str(path / "tasks.py")}


def test_another_distribution_with_our_names_is_found(path: Path) -> None:
    info = path / "luigi_config-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: luigi-config\nVersion: 1.0\n")
    (info / "RECORD").write_text("config/__init__.py,,\nconfigure.py,,\ntasks/one.py,,\n")
    assert installed_twice() == [("config", "luigi-config"), ("tasks", "luigi-config")]
