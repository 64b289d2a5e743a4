"""Build the sdist and the wheel as for publishing, and install the wheel into a new environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import NamedTuple

from tests.arrows import ROOT

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
#: The environment of builds: variables of the tests could put this checkout on Python's path.
CLEAN = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}


class Built(NamedTuple):
    """What would be published."""

    sdist: Path
    wheel: Path  #: built from the sdist, so that it has all that is needed


def checkout_files(*under: str) -> list[Path]:
    """Return the paths of the files of a clean checkout: those of git, and what it does not ignore
    and will hold."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *under],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def build(folder: Path) -> Built:
    """Build both from a copy of the checkout. Downloads nothing."""
    source = folder / "checkout"
    for path in checkout_files():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, source / path)
    sdist = _run_backend("sdist", source, folder)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (unpacked,) = (folder / "sdist").iterdir()
    return Built(sdist, _run_backend("wheel", unpacked, folder))


def _run_backend(kind: str, source: Path, folder: Path) -> Path:
    """Build as pip does without isolation; return the file in the folder."""
    code = f"import sys; from setuptools import build_meta as b; print(b.build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, folder],
        cwd=source,
        env=CLEAN,
        check=True,
        capture_output=True,
        text=True,
    )
    return folder / done.stdout.splitlines()[-1]


def install(wheel: Path, folder: Path) -> Path:
    """Return the `bin` folder of a new environment with the wheel; the packages that it needs are
    those of the tests' environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], env=CLEAN, check=True)
    target = site_packages(folder)
    # A folder that is named like this adds no start-up files, so not this checkout either.
    (target / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    command = [*PIP, "--python", python, "install", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*command, wheel], env=CLEAN, check=True)
    return folder / "bin"


def site_packages(environment: Path) -> Path:
    """Return the folder of an environment's packages."""
    base = str(environment)
    return Path(sysconfig.get_path("purelib", vars={"base": base, "platbase": base}))
