"""`config`, `tasks` and `producer` are ours in every process of ours, whatever has these names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ringhaul.own_packages import HOME, NAMES
from tests.arrows import ROOT

#: Prints which packages a process imports under our names.
SHOW = f"for name in {NAMES}: print(__import__(name).__file__)"


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A folder with a module, a package and a bare folder of our names, and none of ours."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "__init__.py").write_text("NAME = 'theirs'\n")
    (tmp_path / "tasks.py").write_text("NAME = 'theirs'\n")
    (tmp_path / "producer").mkdir()
    return tmp_path


def run(code: str, folder: Path, *, path: str | None = None) -> list[str]:
    """Run code in the folder, which is also on Python's path."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path or str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


OURS = [str(HOME / name / "__init__.py") for name in NAMES]


def test_ours_are_found_beside_others(others: Path) -> None:
    code = f"from ringhaul.own_packages import find_own_packages as f; f(); f(); {SHOW}"
    code = code.replace(f"; {SHOW}", f"\n{SHOW}")
    assert run(code, others) == OURS


def test_ours_are_found_after_others_were_imported(others: Path) -> None:
    code = "import config, tasks\nfrom ringhaul.own_packages import find_own_packages as f; f()\n"
    more = "\nprint(config.NAME, tasks.NAME)\nimport config\nprint(config.__file__)"
    assert run(f"{code}{SHOW}{more}", others) == [*OURS, "theirs theirs", OURS[0]]


def test_a_program_that_imports_ringhaul_keeps_its_own(others: Path) -> None:
    """Such as a notebook that imports `ringhaul.transform`."""
    code = "import ringhaul.transform.loading\nimport config, tasks\nprint(config.NAME, tasks.NAME)"
    assert run(code, others) == ["theirs theirs"]


@pytest.mark.parametrize("module", ["ringhaul.__main__", "ringhaul.celery_app"])
def test_what_starts_a_process_finds_ours(others: Path, module: str) -> None:
    assert run(f"import {module}\n{SHOW}", others) == OURS


def test_the_application_in_a_checkout_finds_the_rest_of_ours(others: Path) -> None:
    """`celery -A tasks` with the checkout on the path, behind another `config`."""
    (others / "tasks.py").unlink()
    code = "import tasks\ntasks.app\nimport config; print(config.__file__)"
    path = f"{others}{os.pathsep}{ROOT}"
    assert run(code, others / "producer", path=path) == OURS[:1]


def test_processes_are_started_by_a_name_that_nothing_hides() -> None:
    """`-m ringhaul`, and scripts by their path: installed, ours have no other name."""
    pattern = re.compile(rf"""["']-m["'], ["']({"|".join(NAMES)})\b""")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("ringhaul", *NAMES, "tests", "bench")
        for path in (ROOT / folder).rglob("*.py")
        for match in pattern.finditer(path.read_text())
    ]
    assert found == []
