"""Hosts for benches: network namespaces, where they are permitted, with workers on them.

The servers, the proxies and the commands are on the host `ops`. Workers reach Redis and the cluster
through proxies there, so each of the two may be at a distance.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis

from bench.delays import delay_proxy
from bench.stage import PROGRAM, Stage
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Workers
from tests.hosts.network import Host, Network, running_network

OPS = "ops"
WORKER_HOSTS = ("w1", "w2", "w3", "w4")
_ADDRESSES = {OPS: "10.0.3.8"} | {
    name: f"10.0.3.{number}" for number, name in enumerate(WORKER_HOSTS, start=11)
}
START_S = 120


@dataclass(frozen=True)
class Hosts:
    """The hosts; `namespaces`: whether they are more than processes of this machine."""

    network: Network
    namespaces: bool


@contextmanager
def running_hosts() -> Iterator[Hosts]:
    """Make the hosts for the length of the block, which runs on `ops`. Say what they are."""
    with ExitStack() as stack:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            network = stack.enter_context(running_network(_ADDRESSES))
        namespaces = bool(network[OPS].namespace)
        if namespaces:
            print("hosts: network namespaces", flush=True)
        for warning in caught:
            print(warning.message, flush=True)
        stack.enter_context(network[OPS].inside())
        yield Hosts(network, namespaces)


def loopback_hosts() -> Hosts:
    """Return hosts that are processes of this machine, for tests: servers run outside of them."""
    names = {name: Host(name, "127" + of.removeprefix("10"), "") for name, of in _ADDRESSES.items()}
    return Hosts(Network(names, ""), namespaces=False)


@contextmanager
def workers(
    hosts: Hosts,
    stage: Stage,
    cluster_port: int,
    per_host: Mapping[str, int],
    *,
    cluster_ms: float = 0.0,
    redis_ms: float = 0.0,
    settings: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Run so many worker processes on each host during the block, and wait until they can work.

    `cluster_port`: of the server on `ops`; the workers reach it `cluster_ms` away, and Redis
    `redis_ms` away, each way.
    """
    ops = hosts.network[OPS].address
    broker = urlsplit(stage.env["RINGHAUL_BROKER_URL"])
    assert broker.hostname is not None and broker.port is not None
    with ExitStack() as stack:
        cluster = stack.enter_context(
            delay_proxy("127.0.0.1", cluster_port, [cluster_ms], listen=ops)
        )
        near = stack.enter_context(
            delay_proxy(broker.hostname, broker.port, [redis_ms], listen=ops)
        )
        log_in = f"{broker.username or ''}:{broker.password or ''}"
        env = dict(stage.env) | {
            "RINGHAUL_CLUSTER_CONTACT_POINTS": ops,
            "RINGHAUL_CLUSTER_PORT": str(cluster.ports[cluster_ms]),
            "RINGHAUL_BROKER_URL": f"redis://{log_in}@{ops}:{near.ports[redis_ms]}{broker.path}",
            **(settings or {}),
        }
        for name, processes in per_host.items():
            host = hosts.network[name]
            folder = stage.folder / name
            folder.mkdir(exist_ok=True)
            named = [] if hosts.namespaces else [f"--hostname=celery@{name}"]
            command = [sys.executable, "-P", *PROGRAM, "worker", "-c", str(processes), *named]
            stack.enter_context(host.running(command, folder / "worker.log", env, folder))
        _wait(stage, sum(per_host.values()), stage.folder)
        yield


def _wait(stage: Stage, slots: int, logs: Path) -> None:
    with redis.Redis.from_url(stage.env["RINGHAUL_BROKER_URL"]) as client:
        alive = Workers(Caller(client))
        deadline = time.monotonic() + START_S
        while alive.slots() != slots:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{alive.slots()} of {slots} started; see {logs}/*/worker.log")
            time.sleep(0.1)
