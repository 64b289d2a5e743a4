"""A copy of a tree in which faults are planted, with an environment that imports the copy alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Environment variables that would bring another tree's modules or settings into the tests.
_DROPPED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
#: How long the first compilation may take.
WARM_UP_S = 1800.0


class TreeCopy:
    """A working tree's files, and a fresh copy of them for each run of tests.

    `tree` is always the same folder, so that the scripts and paths of its environment hold.
    """

    def __init__(self, source: Path, folder: Path, warm_up: Sequence[str] = ()) -> None:
        """`source`: the checkout, with its `.venv`. `folder`: empty, for the copies. `warm_up`: run
        once with Python, so that each copy has what this compiles."""
        self._source, self._base, self.tree = source, folder / "base", folder / "tree"
        for name in _files(source):
            target = self.tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target, follow_symlinks=False)
        self._make_environment()
        if warm_up:
            self.run(warm_up, WARM_UP_S)
        self.tree.rename(self._base)

    def renew(self, changed: Mapping[str, str]) -> None:
        """Make the copy anew, with these files' texts changed. Files are links to one copy of the
        tree, whose own files are never written to."""
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self._base, self.tree, symlinks=True, copy_function=os.link)
        for name, text in changed.items():
            path = self.tree / name
            path.unlink()
            path.write_text(text, encoding="utf-8")

    def run(self, arguments: Sequence[str], timeout_s: float) -> tuple[int | None, str]:
        """Run Python in the copy; return its exit code and output. The code is None if it had to be
        ended after `timeout_s`, with every process that it started."""
        environment = {name: text for name, text in os.environ.items() if name not in _DROPPED}
        process = subprocess.Popen(
            [self.tree / ".venv/bin/python", *arguments],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return process.returncode, output

    def _make_environment(self) -> None:
        """Make `.venv` in the copy: the source's packages, but our own from the copy."""
        own = self._source / ".venv"
        venv = self.tree / ".venv"
        python = own / "bin" / "python"
        subprocess.run([python, "-m", "venv", "--without-pip", venv], check=True)
        packages = next(venv.glob("lib/python*/site-packages"))
        found = next(own.glob("lib/python*/site-packages"))
        # A folder in a .pth file has no .pth files of its own: the source's editable install, which
        # names the source, is left out.
        (packages / "tree.pth").write_text(f"{self.tree}\n{found}\n")
        for script in (own / "bin").iterdir():
            target = venv / "bin" / script.name
            if target.exists() or not script.is_file():
                continue
            begins = script.read_bytes()
            shebang = f"#!{own}/bin/".encode()
            if begins.startswith(shebang):
                target.write_bytes(f"#!{venv}/bin/".encode() + begins.removeprefix(shebang))
                target.chmod(0o755)


def _files(source: Path) -> list[str]:
    """Return the files of a checkout that git knows or would add, and compiled kernels, which take
    a test minutes to compile again."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=source,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    known = {name for name in listed if name and (source / name).exists()}
    kernels = {
        str(path.relative_to(source))
        for pattern in ("*.nbi", "*.nbc")
        for path in (source / "ringhaul").rglob(f"__pycache__/{pattern}")
    }
    return sorted(known | kernels)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
