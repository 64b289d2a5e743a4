"""Each test of settings starts clean: no RINGHAUL variables, an empty home and folder."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The test's current folder; the home folder is `home` in it."""
    for name in list(os.environ):
        if name.startswith(("RINGHAUL_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
