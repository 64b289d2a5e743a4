"""Build and check a release in build/release: `make release`. Publishing is a person's act.

1. The files of the last commit, and nothing else, become an sdist, and that becomes a wheel. Times
   and owners are those of the commit, so that the same commit gives the same bytes.
2. A bill of materials (CycloneDX) lists the packages that an image pins, and SHA256SUMS all files.
3. Both are checked: their metadata, and in new environments an installation, the command, the
   client's tests against the wheel, and `ringhaul demo`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from release.archive import repack
from ringhaul import __version__

ROOT = Path(__file__).parents[1]
#: Variables that could put this checkout on Python's path, or keep pip from what is pinned.
_OURS = ("PYTHON", "PIP_", "RINGHAUL_", "PYTEST_")
PINS = ROOT / "requirements.txt"
#: Tests that run against the installed wheel, without services.
FAST_TESTS = ("tests/unit/client", "tests/unit/cql", "tests/unit/formats", "tests/unit/records")


def main() -> int:
    """Build into a folder, check what was built unless told otherwise, and say what there is."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--unchecked", action="store_true", help="only build")
    options = parser.parse_args()
    if changes := _git("status", "--porcelain"):
        print(f"error: a release is made of a commit, and there are changes:\n{changes}")
        return 2
    shutil.rmtree(options.into, ignore_errors=True)
    options.into.mkdir(parents=True)
    files = build(options.into)
    if not options.unchecked:
        _run(sys.executable, "-m", "twine", "check", "--strict", *files[:2])
        for file in files[:2]:
            check(file)
    for file in files:
        print(f"{digest(file)}  {file}")
    return 0


def build(into: Path) -> list[Path]:
    """Write sdist, wheel, bill of materials and checksums of the last commit; return the paths."""
    epoch = _git("log", "-1", "--format=%ct")
    env = clean_environment(os.environ) | {"SOURCE_DATE_EPOCH": epoch}
    with tempfile.TemporaryDirectory(prefix="ringhaul-release-") as folder:
        source = Path(folder) / "source"
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(source, filter="data")
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", into, source, env=env)
    sdist, wheel = into / f"ringhaul-{__version__}.tar.gz", next(into.glob("*.whl"))
    repack(sdist, int(epoch))
    bill = into / f"ringhaul-{__version__}.cdx.json"
    _run(
        *(sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"),
        *("--output-format", "JSON", "--output-file", bill, ROOT / "deploy/requirements/core.txt"),
        env=env,
    )
    files = [sdist, wheel, bill]
    sums = into / "SHA256SUMS"
    sums.write_text("".join(f"{digest(file)}  {file.name}\n" for file in files))
    return [*files, sums]


def check(file: Path) -> None:
    """Install an sdist or a wheel into a new environment, and use it there."""
    with tempfile.TemporaryDirectory(prefix="ringhaul-release-") as folder:
        home = Path(folder)
        env = clean_environment(os.environ) | {"HOME": folder, "XDG_DATA_HOME": folder}
        _run(sys.executable, "-m", "venv", home / "venv", env=env)
        scripts = home / "venv" / "bin"
        pip = [scripts / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _run(*pip, "install", "--require-hashes", "--requirement", PINS, env=env)
        _run(*pip, "install", "--no-deps", "--no-build-isolation", file, env=env)
        _run(*pip, "check", env=env)
        shown = _run(scripts / "ringhaul", "--version", env=env, cwd=home)
        assert __version__ in shown, shown
        if file.suffix != ".whl":
            return
        # None of the code is beside the tests: they import the wheel's, which the plugin makes
        # known by the names that it has in a checkout.
        shutil.copytree(ROOT / "tests", home / "tests", ignore=shutil.ignore_patterns("*.pyc"))
        shutil.copy(ROOT / "pyproject.toml", home)
        pytest = ("-P", "-m", "pytest", "-q", "-p", "ringhaul.__main__", "-p", "no:cacheprovider")
        _run(scripts / "python", *pytest, *FAST_TESTS, env=env, cwd=home)
        try:
            _run(scripts / "ringhaul", "demo", env=env, cwd=home)
        finally:
            _run(scripts / "ringhaul", "local", "down", "--wipe", env=env, cwd=home)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what could lead builds and checks to this checkout."""
    return {name: text for name, text in environment.items() if not name.startswith(_OURS)}


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _run(*words: object, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run a program and return its output; its errors, and a failure, are shown."""
    argv = list(map(str, words))
    print(f"$ {_shown(argv)}", flush=True)
    done = subprocess.run(argv, env=env, cwd=cwd, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout)
        raise SystemExit(f"error: exit code {done.returncode}: {_shown(argv)}")
    return done.stdout


def _shown(argv: Iterable[str]) -> str:
    return " ".join(argv).replace(sys.executable, "python")


if __name__ == "__main__":
    sys.exit(main())
