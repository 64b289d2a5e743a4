"""Isolate these tests from the settings of the environment, and restore it afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the RINGHAUL variables and set an empty home; restore both afterwards."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(("RINGHAUL_", "XDG_")):
            del os.environ[name]
    os.environ["HOME"] = str(tmp_path / "home")
    yield
    monkeypatch.undo()  # otherwise later, to this environment
    os.environ.clear()
    os.environ.update(before)
