"""Run the commands of a deployment on this machine, in a folder that stands in for its hosts.

A command sees only the paths that its file mounts. Each mounted path is replaced by a folder of the
site wherever it occurs: in arguments, variables and configuration files. A path that is not mounted
is left alone, and does not exist here. Addresses are replaced in the same way. A command's
environment variables are those of its file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from producer.local.valkey import find_server
from tests.acceptance.running import Running, running
from tests.deployment import DEPLOY, ROOT, Command, config_files

SCRIPTS = Path(sys.executable).parent

#: Replaces valkey-cli, which no Python package contains: it pings with the same arguments.
_VALKEY_CLI = """\
#!{python}
import os, sys
import redis
assert sys.argv[1:] == ["ping"], sys.argv
client = redis.Redis(port={port}, password=os.environ.get("REDISCLI_AUTH"))
print("PONG" if client.ping() else "")
"""


class Site:
    """The commands of one kind of deployment, on this machine."""

    def __init__(
        self,
        root: Path,
        *,
        redis_port: int,
        flower_port: int,
        env: Mapping[str, str],
        replacements: Mapping[str, str],
        secrets: Mapping[str, str],
    ) -> None:
        """`env`: extra variables for every ringhaul command. `replacements`: text in the files ->
        the text to use here. `secrets`: name of a file -> its content.
        """
        self.root, self.redis_port, self.flower_port = root, redis_port, flower_port
        self._env, self._secrets = dict(env), dict(secrets)
        self._replacements = {
            **replacements,
            "bind * -::*": "bind 127.0.0.1",
            "port 6379": f"port {redis_port}",
            "redis:6379": f"127.0.0.1:{redis_port}",
            "127.0.0.1:5555": f"127.0.0.1:{flower_port}",
        }
        self._bin = root / "bin"
        self._bin.mkdir(parents=True)
        (self._bin / "valkey-server").symlink_to(find_server())
        client = self._bin / "valkey-cli"
        client.write_text(_VALKEY_CLI.format(python=sys.executable, port=redis_port))
        client.chmod(0o755)

    def run(self, command: Command, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.argv(command),
            env=self.env(command),
            cwd=self.cwd(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    @contextmanager
    def started(self, command: Command) -> Iterator[Running]:
        """Start a long-running command; kill it at the end of the block unless it was stopped."""
        argv = self.argv(command)
        if command.program == "ringhaul flower":
            # In a container it listens on every interface; here, the last --address wins.
            argv += ["--address=127.0.0.1", f"--port={self.flower_port}"]
        log = self.root / f"{_plain(command.name)}.log"
        with running(argv, self.env(command), self.cwd(command), log) as process:
            yield process

    def argv(self, command: Command) -> list[str]:
        words = [self.here(command, word) for word in command.argv]
        if program := shutil.which(words[0], path=self._path()):
            words[0] = program
        return words

    def env(self, command: Command) -> dict[str, str]:
        ours = self._env if "RINGHAUL_CONFIG" in command.env else {}
        here = {name: self.here(command, value) for name, value in command.env.items()}
        return {"PATH": self._path(), **ours, **here}

    def cwd(self, command: Command) -> Path:
        return Path(self.here(command, command.cwd)) if command.cwd else self.root

    def here(self, command: Command, text: str) -> str:
        """Replace the paths and addresses of the deployment's files by those of this machine."""
        # In a single pass, so that an inserted text is not replaced in turn.
        pattern = "|".join(map(re.escape, sorted(self._replacements, key=len, reverse=True)))
        text = re.sub(pattern, lambda match: self._replacements[match[0]], text)
        if not command.mounts:
            return text
        targets = "|".join(map(re.escape, sorted(command.mounts, key=len, reverse=True)))
        return re.sub(
            rf"(?<![\w./-])({targets})(?![\w.-])",
            lambda match: str(self.mount(command, match[1])),
            text,
        )

    def mount(self, command: Command, target: str) -> Path:
        """Return the local path for a path of the command; create it on first use."""
        kind, _, name = command.mounts[target].partition(" ")
        if kind == "programs":
            return SCRIPTS
        if kind in ("shared", "own"):
            path = self.root / kind / _plain(name)
            path.mkdir(parents=True, exist_ok=True)
            return path
        # Read-only inputs: one copy for each command, with that command's paths in it.
        path = self.root / "given" / _plain(command.name) / _plain(target)
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "repo":
            self._copy(command, ROOT / name, path)
        elif kind == "credential":
            _write_private(path, self._secrets[Path(name).name])
        else:
            path.mkdir()
            if kind == "config":
                for file in config_files()[name]:
                    self._copy(command, file, path / file.name)
            elif kind == "secret":
                for key in name.split() or self._secrets:
                    _write_private(path / key, self._secrets[key])
            elif kind == "etc":  # without the passwords, which are readable by root only
                for file in (DEPLOY / "systemd").glob("*.toml"):
                    self._copy(command, file, path / file.name)
            else:
                raise AssertionError(command.mounts[target])
        return path

    def _copy(self, command: Command, source: Path, target: Path) -> None:
        if source.is_dir():
            target.mkdir()
            for child in source.iterdir():
                self._copy(command, child, target / child.name)
        else:
            target.write_text(self.here(command, source.read_text()))

    def _path(self) -> str:
        return os.pathsep.join([str(self._bin), str(SCRIPTS), "/usr/local/bin", "/usr/bin", "/bin"])


def _plain(name: str) -> str:
    return re.sub(r"[^\w.@-]+", "_", name).strip("_")


def _write_private(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o400)
