"""These tests run without any settings but their own, and leave no trace in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path) -> Iterator[None]:
    """No variables of ours and an own home; what a test adds is taken back."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(("RINGHAUL_", "XDG_")):
            del os.environ[name]
    os.environ["HOME"] = str(tmp_path / "home")
    yield
    os.environ.clear()
    os.environ.update(before)
