"""Imports are declared, declared requirements are pinned, and pins have hashes."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.arrows import PACKAGES, ROOT, imports
from tests.cases import each

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


#: Where the pins have markers: an early 3.11 needs a package more, and macOS on Intel older ones.
ENVIRONMENTS = [
    {"sys_platform": system, "platform_machine": machine, "python_full_version": python}
    for system, machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"))
    for python in ("3.11.2", "3.13.1")
]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_pinned_versions_satisfy_the_ranges(environment: dict[str, str]) -> None:
    from packaging.requirements import Requirement

    pinned = _versions(ROOT / "requirements.txt", environment)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ranges = [*pyproject["project"]["dependencies"], *pyproject["build-system"]["requires"]]
    for name, extra in pyproject["project"]["optional-dependencies"].items():
        ranges += extra if name not in NOT_INSTALLED else []
    for text in ranges:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(environment):
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


@each("environment", ENVIRONMENTS)
@each("path", LOCKS[1:])
def test_a_package_pinned_twice_has_one_version(path: str, environment: dict[str, str]) -> None:
    versions = _versions(ROOT / "requirements.txt", environment)
    for name, version in _versions(ROOT / path, environment).items():
        assert versions.get(name, version) == version


def _versions(path: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the pins that count in an environment, by name."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    for line in _pins(path):
        marker = Requirement(line).marker
        if marker is None or marker.evaluate(environment):
            assert found.setdefault(_distribution(line), _version(line)) == _version(line), line
    return found


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


def test_the_pins_of_the_manual_are_the_same_ones() -> None:
    pages = (ROOT / "manual" / "requirements.txt").read_text()
    whole = (ROOT / "requirements.txt").read_text()
    pins = re.findall(r"^\w[^\n]*(?:\n    [^\n]*)+", pages, re.MULTILINE)
    assert any(pin.startswith("zensical==") for pin in pins)
    assert all(pin in whole for pin in pins)
