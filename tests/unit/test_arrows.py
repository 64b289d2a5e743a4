"""Rooms import only what the table allows, without cycles, and pure rooms reach no service."""

from pathlib import Path

import pytest

from tests.arrows import (
    NOT_PURE,
    PACKAGES,
    PURE,
    PURE_MODULES,
    ROOMS,
    ROOT,
    arrows,
    back_arrows,
    circles,
    diagram,
    impurities,
    module_of,
    room_of,
    unchecked_claims,
)


def test_every_import_is_in_the_table() -> None:
    assert back_arrows(ROOT) == []


def test_no_modules_import_each_other() -> None:
    assert circles(ROOT) == []


def test_a_room_imports_only_rooms_that_stand_before_it() -> None:
    order = list(ROOMS)
    for room, targets in ROOMS.items():
        for target in targets.split():
            assert order.index(target) < order.index(room), f"{room} imports {target}"


def test_the_table_has_no_unused_imports() -> None:
    found = arrows(ROOT)
    for room, targets in ROOMS.items():
        assert set(targets.split()) - found.get(room, set()) == set(), room


def test_every_room_has_modules() -> None:
    modules = {
        module_of(path, ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
    }
    for name in (*ROOMS, *PURE, *PURE_MODULES, *NOT_PURE):
        assert any(name in (module, room_of(module)) for module in modules), name


def test_pure_rooms_reach_no_service() -> None:
    assert impurities(ROOT) == []


def test_who_says_pure_is_checked() -> None:
    assert unchecked_claims(ROOT) == []


def test_a_claim_that_nobody_checks_is_caught(tmp_path: Path) -> None:
    plant(tmp_path, "tasks/a.py", '"""Text of a message. Pure."""')
    plant(tmp_path, "ringhaul/cql/a.py", '"""A type. Pure."""')
    assert unchecked_claims(tmp_path) == ["tasks.a"]


@pytest.mark.parametrize("package", ["ringhaul", "tasks", "producer"])
def test_the_picture_in_the_docs_matches_the_table(package: str) -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    wanted = f"```mermaid\n{diagram(package)}\n```"
    assert wanted in page, f"put this into docs/ARCHITECTURE.md:\n{wanted}"


def test_every_package_has_its_init() -> None:
    """Without it a folder of tests can shadow a package, and a package is left out of the wheel."""
    for package in (*PACKAGES, "tests"):
        for path in (ROOT / package).rglob("*.py"):
            assert (path.parent / "__init__.py").is_file(), path.parent


def plant(root: Path, path: str, text: str, **others: str) -> None:
    """Write a module with this text, and others (dotted name -> text) for it to import."""
    for module, content in {path.removesuffix(".py").replace("/", "."): text, **others}.items():
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


THERE = {
    name: ""
    for name in (
        "ringhaul.errors",
        "ringhaul.cql.cells",
        "ringhaul.load.run",
        "ringhaul.records.job",
        "ringhaul.formats.split",
        "config.settings",
        "tasks.connect",
        "tasks.child.unit",
        "tasks.units",
        "producer.text",
        "producer.run.watch",
        "producer.commands.load",
    )
}


@pytest.mark.parametrize(
    ("path", "text", "caught"),
    [
        # between packages
        ("ringhaul/a.py", "import config.settings", "ringhaul/a.py:1 imports config.settings"),
        ("config/a.py", "from ringhaul.errors import Terminal", "config/a.py:1 imports"),
        ("tasks/a.py", "\nfrom producer import text", "tasks/a.py:2 imports producer.text"),
        ("tasks/a.py", "def f():\n    import producer.text", "tasks/a.py:2 imports producer.text"),
        (
            "tasks/a.py",
            "import importlib\nimportlib.import_module('producer.text')",
            "tasks/a.py:2",
        ),
        ("tasks/a/b.py", "from ...producer import text", "tasks/a/b.py:1 imports producer.text"),
        ("producer/a.py", "from tests import services", "producer/a.py:1 imports tests"),
        # between rooms
        ("ringhaul/cql/a.py", "from ringhaul.formats import split", "ringhaul.cql may not import"),
        ("ringhaul/records/a.py", "from ringhaul.load.run import x", "ringhaul.records may not"),
        ("ringhaul/formats/a.py", "from ..load.run import x", "ringhaul.formats may not"),
        ("tasks/child/a.py", "from tasks.units import x", "tasks.child may not import tasks.units"),
        ("tasks/parent/a.py", "from tasks.child.unit import x", "tasks.parent may not import"),
        ("producer/plan/a.py", "from producer.run.watch import x", "producer.plan may not import"),
        ("producer/run/a.py", "import producer.commands.load", "producer.run may not import"),
        ("producer/new/a.py", "from producer.text import x", "no room producer.new"),
    ],
)
def test_a_planted_arrow_is_caught(tmp_path: Path, path: str, text: str, caught: str) -> None:
    plant(tmp_path, path, text, **THERE)
    found = back_arrows(tmp_path)
    assert found and caught in found[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tasks/a.py", "from ringhaul import errors\nimport config.settings\nimport celery"),
        ("tasks/child/a.py", "from tasks import connect\nfrom ringhaul.load.run import x"),
        ("producer/a.py", "from tasks.connect import x"),
        ("ringhaul/cql/a.py", "from . import cells\nfrom ..errors import Terminal"),
        ("ringhaul/load/a.py", "from ringhaul.records.job import LoadJob"),
        (
            "config/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ringhaul.errors",
        ),
    ],
)
def test_an_arrow_of_the_table_is_allowed(tmp_path: Path, path: str, text: str) -> None:
    plant(tmp_path, path, text, **THERE)
    assert back_arrows(tmp_path) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_planted_circle_is_caught(tmp_path: Path, package: str) -> None:
    plant(
        tmp_path,
        f"{package}/a.py",
        f"from {package}.b import x",
        **{f"{package}.b": f"def f():\n    from {package} import c", f"{package}.c": ""},
    )
    assert circles(tmp_path) == []
    (tmp_path / package / "c.py").write_text(f"import {package}.a")
    assert circles(tmp_path) == [[f"{package}.{name}" for name in "abc"]]
    (tmp_path / package / "c.py").write_text(
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {package}.a"
    )
    assert circles(tmp_path) == [[f"{package}.{name}" for name in "abc"]]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ringhaul/cql/a.py", "from redis import Redis"),
        ("ringhaul/formats/write/a.py", "import socket"),
        ("ringhaul/records/a.py", "from ringhaul.storage import remote"),
        ("ringhaul/load/report.py", "from ringhaul.ledger.ledger import Ledger"),
        ("ringhaul/load/report.py", "from ringhaul.ledger import ledger"),
        ("ringhaul/ledger/states.py", "def f():\n    import cassandra.cluster"),
    ],
)
def test_a_planted_impurity_is_caught(tmp_path: Path, path: str, text: str) -> None:
    services = {
        "ringhaul.storage.remote": "import threading",
        "ringhaul.ledger.ledger": "import redis",
    }
    plant(tmp_path, path, text, **services)
    assert impurities(tmp_path)


def test_services_are_allowed_elsewhere(tmp_path: Path) -> None:
    plant(tmp_path, "ringhaul/sources/files.py", "import subprocess")
    assert impurities(tmp_path) == []
