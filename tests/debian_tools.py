"""Programs that tests use and Python does not bring; `make test-tools` provides them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "debian" / "usr" / "bin"


def find_program(name: str) -> Path:
    """Find `chromium`, `prometheus` or `promtool`; the test fails where it is missing."""
    found = shutil.which(name, path=os.pathsep.join([str(FOLDER), os.environ.get("PATH", "")]))
    if found is None:
        pytest.fail(f"this test needs {name}: run `make test-tools` and read what it says")
    return Path(found)
