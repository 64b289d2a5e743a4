"""Each test of settings starts with none: no variables of ours, an own home and folder."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder that the test runs in; its home is `home` in there."""
    for name in list(os.environ):
        if name.startswith(("RINGHAUL_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
