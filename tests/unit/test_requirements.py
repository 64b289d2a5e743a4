"""Imports are declared, declared requirements are pinned, and pins have hashes."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.arrows import PACKAGES, ROOT, imports

#: Extras without a test: there is no server to test gcsfs against.
NOT_INSTALLED = {"gcs"}
#: Modules that may import packages of the extra `local`.
OF_CASSANDRA = ("producer.local.cqlsh", "producer.local.jars", "producer.local.java")


def test_third_party_imports_are_declared() -> None:
    """Nothing works only because something else happens to install it.

    Packages of the extra `local` are imported in `producer.local` only, by the code that runs
    Cassandra: everything else, the embedded broker too, works without any extra.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {_distribution(text) for text in project["dependencies"]}
    local = {_distribution(text) for text in project["optional-dependencies"]["local"]}
    assert not core & local
    distributions = packages_distributions()
    for item in imports(ROOT):
        name = item.target_package
        if name in PACKAGES or name in sys.stdlib_module_names:
            continue
        where = f"{item.path.relative_to(ROOT)}:{item.line} imports {item.target}"
        providers = {_distribution(provider) for provider in distributions.get(name, [])}
        of_cassandra = item.module in OF_CASSANDRA
        assert providers & (core | local if of_cassandra else core), where


def test_pinned_versions_satisfy_the_ranges() -> None:
    from packaging.requirements import Requirement

    pinned = {}
    for line in _pins(ROOT / "requirements.txt"):
        pinned[_distribution(line)] = _version(line)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ranges = [*pyproject["project"]["dependencies"], *pyproject["build-system"]["requires"]]
    for name, extra in pyproject["project"]["optional-dependencies"].items():
        ranges += extra if name not in NOT_INSTALLED else []
    for text in ranges:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pinned[_distribution(text)]), text


LOCKS = ["requirements.txt", "bench/requirements.txt"] + [
    f"deploy/requirements/{name}.txt" for name in ("core", "s3", "gcs")
]


@pytest.mark.parametrize("path", LOCKS)
def test_every_pin_has_the_hashes_of_its_files(path: str) -> None:
    text = (ROOT / path).read_text()
    entries = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert len(entries) == len(_pins(ROOT / path)) > 5
    for entry in entries:
        assert re.search(r"(?m)^    --hash=sha256:[0-9a-f]{64}( \\)?$", entry), entry


@pytest.mark.parametrize("path", LOCKS[1:])
def test_a_package_pinned_twice_has_one_version(path: str) -> None:
    versions = {_distribution(line): _version(line) for line in _pins(ROOT / "requirements.txt")}
    for line in _pins(ROOT / path):
        assert versions.get(_distribution(line), _version(line)) == _version(line)


def _version(requirement: str) -> str:
    from packaging.requirements import Requirement

    return next(iter(Requirement(requirement).specifier)).version


def _pins(path: Path) -> list[str]:
    """The requirements that a file pins, without their hashes."""
    lines = path.read_text().splitlines()
    return [line.rstrip(" \\") for line in lines if line and not line.startswith(("#", " "))]


def _distribution(requirement: str) -> str:
    """The normalised name that a requirement starts with."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(requirement).name)
