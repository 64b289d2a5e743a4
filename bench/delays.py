"""The cluster at a distance: a proxy for each delay, and a worker behind each.

The proxy (`bench/delay_proxy`, Rust without any crate) delays bytes and limits nothing else. The
driver reaches discovered nodes at `cluster.port`, so a command with the proxy's port reaches the
node only through it. Every delay has a broker database to itself, or its workers would take the
jobs of the others.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench.processes import tree_usage
from bench.stage import Stage
from config.sections import cache_dir_default

LOOPBACK = "127.0.0.1"
_SOURCE = Path(__file__).parent / "delay_proxy"


class Distant(NamedTuple):
    """A stage whose commands reach the node through a delay, and the pid of its worker."""

    stage: Stage
    worker_pid: int


class Proxy(NamedTuple):
    """A running proxy: the port for each delay in milliseconds."""

    pid: int
    ports: Mapping[float, int]

    def cpu_s(self) -> float:
        """Return the CPU it has used so far."""
        return tree_usage(self.pid).cpu_s


@cache
def cargo_program(source: Path, name: str, needed_by: str) -> Path:
    """Return the program of a Rust package; build it if it is not up to date.

    Raise `SystemExit` without cargo.
    """
    cargo = shutil.which("cargo")
    if cargo is None:
        raise SystemExit(f"{needed_by} needs cargo (https://rustup.rs), which is not on PATH")
    target = cache_dir_default() / "bench" / source.name
    print(f"building {source.name} in {target} ...", flush=True)
    subprocess.run(
        [
            *("nice", "-n", "19", cargo, "build", "--release", "--locked", "--quiet"),
            *("--manifest-path", str(source / "Cargo.toml"), "--target-dir", str(target)),
        ],
        check=True,
    )
    return target / "release" / name


@contextmanager
def delay_proxy(
    host: str, port: int, delays_ms: Sequence[float], *, listen: str = LOOPBACK
) -> Iterator[Proxy]:
    """Run the proxy in front of a server during the block. `listen`: its own address."""
    program = cargo_program(_SOURCE, "delay-proxy", "the delay proxy")
    process = subprocess.Popen(
        [str(program), listen, host, str(port), *map(str, delays_ms)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None and process.stdin is not None
        ports: list[int] = json.loads(process.stdout.readline())
        try:
            yield Proxy(process.pid, dict(zip(delays_ms, ports, strict=True)))
        finally:
            process.stdin.close()  # which ends it


@contextmanager
def at_distances(
    stage: Stage, delays_ms: Sequence[float], processes: int
) -> Iterator[tuple[Proxy, dict[float, Distant]]]:
    """Run the proxy, and for each delay a worker with so many processes behind it."""
    ends = stage.endpoints
    with ExitStack() as stack:
        proxy = stack.enter_context(delay_proxy(ends.contact_points[0], ends.port, delays_ms))
        found = {}
        for number, (delay_ms, port) in enumerate(proxy.ports.items()):
            distant = behind(stage, port, number)
            found[delay_ms] = Distant(distant, stack.enter_context(distant.worker(processes)))
        yield proxy, found


def behind(stage: Stage, port: int, database: int) -> Stage:
    """Return the stage as seen through a proxy at `port`, with a broker database to itself.

    Its session, which checks results, stays near the node.
    """
    ends = replace(stage.endpoints, port=port)
    folder = stage.folder / f"at-{port}"
    folder.mkdir()
    broker = f"{stage.env['RINGHAUL_BROKER_URL'].rpartition('/')[0]}/{database}"
    changed = {"RINGHAUL_CLUSTER_PORT": str(port)}
    return replace(
        stage,
        endpoints=ends,
        folder=folder,
        env=stage.env | changed | {"RINGHAUL_BROKER_URL": broker},
        env_embedded=stage.env_embedded | changed,
    )
