"""Functions are found only where the host's settings allow."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringhaul.errors import UsageError
from ringhaul.transform.errors import TransformError
from ringhaul.transform.loading import check_names, is_allowed, load_transforms

HOST = socket.gethostname()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of modules that are unloaded after the test."""
    before, finders = set(sys.modules), list(sys.meta_path)
    (tmp_path / "rh_etl.py").write_text(
        "import rh_helper\n\ndef mask(batch):\n    return rh_helper.same(batch)\n\nNUMBER = 5\n"
    )
    (tmp_path / "rh_helper.py").write_text("def same(batch):\n    return batch\n")
    (tmp_path / "rh_acme" / "deep").mkdir(parents=True)
    (tmp_path / "rh_acme" / "deep" / "people.py").write_text("def mask(batch): return batch\n")
    yield tmp_path
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if name.startswith("rh_"):
            del sys.modules[name]


def refused(name: str, allowed: list[str], folder: Path | None) -> str:
    with pytest.raises(TransformError) as caught:
        load_transforms([name], allowed, folder)
    assert str(caught.value).startswith(f"transform {name} on host {HOST} ")
    return str(caught.value)


def test_functions_are_found_in_the_folder_with_what_their_modules_import(folder: Path) -> None:
    names = ["rh_etl:mask", "rh_acme.deep.people:mask"]
    found = load_transforms(names, ["rh_etl:mask", "rh_acme.*:*"], folder)
    assert [transform.name for transform in found] == names
    assert [transform.function(5) for transform in found] == [5, 5]
    assert str(folder) not in sys.path


def test_functions_of_installed_packages_are_found_without_a_folder() -> None:
    (found,) = load_transforms(["ringhaul.transform.examples:starred"], ["ringhaul.*:*"], None)
    assert callable(found.function)


@pytest.mark.parametrize(
    ("name", "patterns", "allowed"),
    [
        ("etl:mask", [], False),
        ("etl:mask", ["etl:mask"], True),
        ("etl:mask", ["other:mask", "etl:m*"], True),
        ("etl:mask", ["etl:split"], False),
        ("etl:mask", ["etl"], False),
        ("etl.people:mask", ["etl:*"], False),
        ("etl.people:mask", ["etl.*:mask"], True),
        ("ETL:mask", ["etl:mask"], False),
        ("os:system", ["etl:*", "o*:mask"], False),
    ],
)
def test_a_function_is_allowed_by_a_pattern_for_module_and_function(
    name: str, patterns: list[str], allowed: bool
) -> None:
    assert is_allowed(name, patterns) is allowed


def test_a_disallowed_function_is_refused_before_its_module_is_searched(folder: Path) -> None:
    (folder / "rh_trap.py").write_text(f"open({str(folder / 'sprung')!r}, 'w')\n")
    message = refused("rh_trap:run", ["rh_etl:*"], folder)
    assert "the setting transform.allowed lists rh_etl:*" in message
    assert "allowed lists none" in refused("rh_trap:run", [], folder)
    assert not (folder / "sprung").exists()


def test_a_failed_import_says_where_it_was_searched(folder: Path) -> None:
    (folder / "rh_bad.py").write_text("import rh_not_there\n")
    (folder / "rh_leaves.py").write_text("raise SystemExit(3)\n")
    allowed = ["*:*"]
    assert "no module named rh_none" in refused("rh_none:run", allowed, None)
    message = refused("rh_bad:run", allowed, folder)
    assert f"from {folder} (transform.path) and the installed packages" in message
    assert "ModuleNotFoundError: No module named 'rh_not_there'" in message
    assert "SystemExit: 3" in refused("rh_leaves:run", allowed, folder)
    assert "has no attribute 'nothing'" in refused("rh_etl:nothing", allowed, folder)
    assert "is a int, not a function" in refused("rh_etl:NUMBER", allowed, folder)
    assert not {"rh_bad", "rh_leaves"} & sys.modules.keys()


def test_a_module_with_a_taken_name_hides_nothing(folder: Path) -> None:
    (folder / "structlog.py").write_text("def run(batch): return batch\n")
    (folder / "json.py").write_text("raise AssertionError('imported in place of json')\n")
    import structlog

    message = refused("structlog:run", ["structlog:*"], folder)
    assert "another module structlog than" in message and "rename yours" in message
    assert sys.modules["structlog"] is structlog
    load_transforms(["rh_etl:mask"], ["rh_etl:*"], folder)
    import json

    assert "site-packages" not in json.__file__ and str(folder) not in json.__file__


def test_the_current_folder_is_never_searched(tmp_path: Path) -> None:
    (tmp_path / "rh_here.py").write_text("def run(batch): return batch\n")
    script = (
        "from ringhaul.transform.loading import load_transforms\n"
        "try: load_transforms(['rh_here:run'], ['*:*'], None)\n"
        "except Exception as error: print(error)\n"
    )
    (tmp_path / "rh_script.py").write_text(script)
    # Both put the current folder first in the import path, as '' and by its name.
    for how in (["-c", script], ["-m", "rh_script"]):
        done = subprocess.run(
            [sys.executable, *how],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "no module named rh_here" in done.stdout, done


@pytest.mark.parametrize(
    "name", ["mask", "etl.mask", "etl:", ":mask", "etl:a.b", "e tl:x", "../x:y"]
)
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="give MODULE:FUNCTION"):
        check_names([name])
    with pytest.raises(TransformError, match="is not allowed"):
        load_transforms([name], ["*:*", "*"], None)
