"""A fleet for tests: hosts, their servers, and the command."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from ringhaul.ledger import keys
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, forking, wait_until
from tests.hosts.network import Network, running_network
from tests.hosts.servers import BROKER_PORT, CQL_PORT, running_broker, running_cassandra
from tests.object_store import ObjectStore, running_object_store
from tests.services import connected

STORE_PORT = 9000
#: Short, so that losses are noticed soon.
TIMING = {
    "RINGHAUL_WORKER_LEASE_S": "4",
    "RINGHAUL_WORKER_SWEEP_S": "0.5",
    "RINGHAUL_WORKER_UNCLAIMED_S": "3",
    "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
}


@dataclass
class Fleet:
    """The hosts, with the servers up. Tests run on the host `ops`."""

    network: Network
    folder: Path
    store: ObjectStore
    session: Session
    ledger: Ledger
    #: Settings of every host, and the credentials that every host has.
    env: dict[str, str]
    _running: dict[str, tuple[dict[str, str], ExitStack]] = field(default_factory=dict)

    @property
    def ringhaul(self) -> Ringhaul:
        """The command, on the host of the current thread."""
        return Ringhaul(self.host_env("ops"), self.home("ops"))

    def home(self, name: str) -> Path:
        """Return the folder of a host's processes and state; create it on first use."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def host_env(self, name: str, **env: str) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("RINGHAUL_")}
        return clean | self.env | {"RINGHAUL_STATE_DIR": str(self.home(name) / "state")} | env

    def workers(self, *names: str, **settings: str) -> None:
        """Run workers on exactly these hosts; those that run with these settings stay.

        Wait until the ledger lists exactly these, if there are any.
        """
        for name in set(self._running) - set(names):
            self.stop(name)
        for name in names:
            if name in self._running and self._running[name][0] != settings:
                self.stop(name)
        missing = [name for name in names if name not in self._running]
        for name in missing:
            self._start(name, settings)
        if not names:
            return
        wait_until(
            lambda: self.alive() == set(names),
            f"workers on {names}; see {self.folder}/*/worker.log",
        )

    def begin(self, name: str, **settings: str) -> None:
        """Start one more worker on a host, and wait for its heartbeat."""
        self._start(name, settings)
        wait_until(lambda: self.is_alive(name), f"{name}; see {self.home(name)}/worker.log")

    def _start(self, name: str, settings: dict[str, str]) -> None:
        # A node name for hosts without a separate host name.
        named = [] if self.network[name].namespace else [f"--hostname=celery@{name}"]
        command = [sys.executable, "-P", "-m", "ringhaul", "worker", "-c", "1", *named]
        home = self.home(name)
        stack = ExitStack()
        process = self.network[name].running(
            command, home / "worker.log", self.host_env(name, **settings), home
        )
        stack.enter_context(process)
        self._running[name] = (settings, stack)

    def stop(self, name: str) -> None:
        """Kill a host's worker, as when the host goes down."""
        _, stack = self._running.pop(name)
        stack.close()

    def alive(self) -> set[str]:
        """Return the hosts whose workers have a heartbeat."""
        return {worker.host for worker in Workers(self.ledger.caller).alive()}

    def wait_for_job(self, job: str) -> None:
        there = lambda: job in {status.job for status in self.ledger.jobs()}  # noqa: E731
        wait_until(there, f"the job {job}")

    def is_alive(self, name: str) -> bool:
        return name in self.alive()

    def units_of(self, job: str, name: str) -> set[int]:
        """Return the units that a host's workers hold now."""
        owners = self.ledger.caller.client.hgetall(keys.job_key(job, "owner"))
        return {int(unit) for unit, token in owners.items() if f"@{name}:" in token.decode()}

    def hosts_by_unit(self, job: str) -> dict[int, str]:
        """Return done unit -> host of the committed attempt."""
        results = self.ledger.results(job)
        return {unit: packed.rsplit(",", 1)[1].rpartition(":")[0] for unit, packed in results}

    def units_by_host(self, job: str) -> Counter[str]:
        return Counter(self.hosts_by_unit(job).values())


@contextmanager
def running_fleet(
    folder: Path, addresses: dict[str, str], nodes: dict[str, str], hidden: dict[str, Path]
) -> Iterator[Fleet]:
    """Start hosts and servers. `nodes`: Cassandra's hosts and their data centres; the first one is
    the local data centre of every worker. `broker`, `store` and `ops` are other hosts; the block
    runs on `ops`.

    `hidden`: host -> folder that the host does not see.
    """
    with ExitStack() as stack:
        network = stack.enter_context(running_network(addresses))
        for name, path in hidden.items():
            network[name].hidden = path
        places = [(network[name], data_centre) for name, data_centre in nodes.items()]
        stack.enter_context(running_cassandra(places, folder / "cassandra"))
        password = stack.enter_context(running_broker(network["broker"], folder))
        with network["store"].inside():
            address = network["store"].address
            store = stack.enter_context(running_object_store(folder, address, STORE_PORT))
        stack.enter_context(network["ops"].inside())
        ends: Any = SimpleNamespace(
            contact_points=[host.address for host, _ in places],
            port=CQL_PORT,
            user=None,
            password_file=None,
        )
        # At this level a row is visible in whatever data centre its replicas are.
        session = stack.enter_context(connected(ends, ConsistencyLevel.ALL))
        broker = f"{network['broker'].address}:{BROKER_PORT}/0"
        client = connect(f"redis://:{password.read_text()}@{broker}")
        stack.callback(client.close)
        env = TIMING | store.env
        env |= {
            "RINGHAUL_BROKER_URL": f"redis://{broker}",
            "RINGHAUL_BROKER_PASSWORD_FILE": str(password),
            "RINGHAUL_CLUSTER_CONTACT_POINTS": ",".join(ends.contact_points),
            "RINGHAUL_CLUSTER_PORT": str(CQL_PORT),
            "RINGHAUL_CLUSTER_LOCAL_DC": places[0][1],
        }
        fleet = Fleet(network, folder, store, session, Ledger(client), env)
        # Forked on this host: the other process that forks is on none of these.
        stack.enter_context(forking(fleet.ringhaul))
        try:
            yield fleet
        finally:
            for name in list(fleet._running):
                fleet.stop(name)
