"""Run every command line of docker-compose.yml, the Dockerfile, the systemd units and the
Kubernetes manifests: a broker, workers, beat and Flower start, their probes succeed, a load
writes into Cassandra through them, and they stop in time.

`tests/deployment.py` finds the commands in the files. A new command fails the test of its file
until the test runs it, or `NOT_RUN` gives the reason why not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger import keys
from tests.acceptance.command import wait_until
from tests.acceptance.deployed import SCRIPTS, Site
from tests.acceptance.oracle import assert_table
from tests.acceptance.running import Running, answers, free_port, get, wait_for_worker
from tests.deployment import (
    ROOT,
    Command,
    board_queries,
    compose_commands,
    dockerfile_commands,
    dockerfile_instructions,
    manifest_commands,
    manifests,
    unit_commands,
)
from tests.kernels import bring_to_cache
from tests.services import restart_valkey, running_valkey

#: Command -> why it is not run. tests/unit/test_deploy.py checks the files that it reads.
NOT_RUN = {
    "compose cassandra health": "cqlsh is in Cassandra's image, and not here",
    "compose prometheus": "the program is in its image",
    "compose prometheus health": "Prometheus is not installed here",
    "compose grafana health": "Grafana is not installed here",
    "docker RUN 5": "it makes a user: only root may, and the host would keep it",
}
ROWS = [(number, f"name {number}") for number in range(500)]
PASSWORD = 'with "all" that \\ a user # may write'

SCHEDULE = """
[schedule.tick]
every = "1s"
steps = [["count", "-t", "shop.orders"]]
"""

MakeSite = Callable[..., Site]


@pytest.fixture
def make_site(
    endpoints: Endpoints, keyspace: str, cassandra_session: Session, tmp_path: Path
) -> MakeSite:
    """Return a function that makes a site with a table for `shop.orders`."""
    cassandra_session.execute(f"CREATE TABLE {keyspace}.orders (id int PRIMARY KEY, name text)")

    def make(replacements: Mapping[str, str] | None = None, redis_password: str = PASSWORD) -> Site:
        return Site(
            tmp_path / "site",
            redis_port=free_port(),
            flower_port=free_port(),
            env={
                "RINGHAUL_CLUSTER_PORT": str(endpoints.port),
                "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
                "RINGHAUL_WORKER_SWEEP_S": "0.5",
            },
            replacements={"shop.orders": f"{keyspace}.orders", **(replacements or {})},
            secrets={"redis_password": redis_password, "cassandra_password": "not used"},
        )

    return make


class Rehearsal:
    """Runs the commands of one kind of deployment."""

    def __init__(self, site: Site, commands: Iterator[Command]) -> None:
        self.site = site
        self.commands = {command.name: command for command in commands}
        self.standing: dict[str, Running] = {}
        self.ran: set[str] = set()

    def once(self, command: Command) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, and assert that it succeeds."""
        self.ran.add(command.name)
        done = self.site.run(command)
        assert done.returncode == 0, done.stderr
        return done

    def start(self, stack: ExitStack, program: str) -> Running:
        """Start the command of a program, after checking that its probes fail before."""
        (command,) = (
            one
            for one in self.commands.values()
            if one.grace_s is not None and program in one.program
        )
        for probe in self.probes(command):
            assert not self.well(probe), f"{probe.name}: succeeds before the start"
        self.ran.add(command.name)
        running = stack.enter_context(self.site.started(command))
        self.standing[command.name] = running
        return running

    def start_beat(self, stack: ExitStack) -> None:
        """Start beat with a schedule, which the user has to add to the files."""
        (beat,) = (one for one in self.commands.values() if one.program == "ringhaul beat")
        file = self.site.mount(beat, "/etc/ringhaul") / "schedule.toml"
        assert "[schedule." not in file.read_text()
        file.write_text(self.site.here(beat, SCHEDULE))
        self.start(stack, "ringhaul beat")

    def wait(self) -> None:
        """Wait until the probes of everything that was started succeed."""
        for name, running in self.standing.items():
            for probe in self.probes(self.commands[name]):
                wait_until(
                    lambda probe=probe, running=running: running.read() and self.well(probe),
                    f"{probe.name}; see {running.log}",
                )

    def probes(self, command: Command) -> list[Command]:
        """Return the probes of a command: their names begin with its name."""
        return [one for name, one in self.commands.items() if name.startswith(f"{command.name} ")]

    def well(self, probe: Command) -> bool:
        """Return whether a probe succeeds now."""
        self.ran.add(probe.name)
        if probe.program == "GET":
            with contextlib.suppress(OSError):
                return get(self.flower(probe.argv[1]))[0] == 200
            return False
        if probe.program == "connect":
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", self.site.redis_port)) == 0
        return self.site.run(probe).returncode == 0

    def flower(self, path: str) -> str:
        return f"http://127.0.0.1:{self.site.flower_port}{path}"

    def stop(self) -> None:
        """Stop everything within the time that its file allows, the broker last."""
        for name, running in reversed(self.standing.items()):
            running.stops(self.commands[name].grace_s or 0)

    def left_out(self) -> set[str]:
        """Return the commands of the files that were not run."""
        return self.commands.keys() - self.ran


def write_rows(path: Path) -> None:
    path.write_text("id,name\n" + "".join(f"{number},{name}\n" for number, name in ROWS))


def test_the_services_of_the_compose_file(
    make_site: MakeSite, endpoints: Endpoints, cassandra_session: Session, keyspace: str
) -> None:
    site = make_site()
    cluster = {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": ",".join(endpoints.contact_points),
        "RINGHAUL_CLUSTER_LOCAL_DC": endpoints.local_dc,
    }
    rehearsal = Rehearsal(site, compose_commands(cluster))
    owner = {"OWNER": f"{os.getuid()}:{os.getgid()}"}
    rehearsal.once(dataclasses.replace(rehearsal.commands["compose init"], env=owner))
    with ExitStack() as stack:
        rehearsal.start(stack, "valkey-server")
        rehearsal.wait()
        rehearsal.start(stack, "ringhaul worker")
        rehearsal.start(stack, "ringhaul flower")
        rehearsal.wait()
        # docker compose run --rm worker load ...
        worker = rehearsal.commands["compose worker"]
        password = (site.mount(worker, "/run/ringhaul") / "redis_password").read_text()
        argv = ("ringhaul", "load", "/data/orders.csv", "--table", "shop.orders")
        write_rows(site.mount(worker, "/data") / "orders.csv")
        rehearsal.once(dataclasses.replace(worker, argv=argv))
        assert_table(cassandra_session, f"{keyspace}.orders", "id, name", ROWS)
        wait_until(
            lambda: dashboard_metrics() <= set(metrics(rehearsal.flower("/metrics"))),
            "what the dashboards show",
        )
        # Prometheus asks for it by the name of the service.
        named = urllib.request.Request(
            rehearsal.flower("/metrics"), headers={"Host": "flower:5555"}
        )
        with urllib.request.urlopen(named, timeout=60) as answer:
            assert answer.status == 200
        rehearsal.start_beat(stack)
        with redis.Redis(port=site.redis_port, password=password) as client:
            wait_until(lambda: has_ticked(client), "beat's first job")
        rehearsal.stop()
    assert rehearsal.left_out() == {name for name in NOT_RUN if name.startswith("compose ")}


def metrics(url: str) -> Iterator[str]:
    """Yield the names of the samples on a page of metrics."""
    for line in get(url)[1].splitlines():
        if line and not line.startswith("#"):
            yield line.partition("{")[0].partition(" ")[0]


def dashboard_metrics() -> set[str]:
    """Return the metrics that the dashboards query, except those of schedules and running jobs, of
    which there are none."""
    queries = " ".join(query for _, query in board_queries())
    names = set(re.findall(r"\b(?:flower|ringhaul)_\w+", queries))
    return {name for name in names if not re.match(r"ringhaul_(schedule|job)_", name)}


def test_the_systemd_units(
    make_site: MakeSite,
    endpoints: Endpoints,
    cassandra_session: Session,
    keyspace: str,
    broker: EmbeddedValkey,
    broker_url: str,
) -> None:
    secret, _, address = broker_url.removeprefix("redis://:").partition("@")
    points = ", ".join(f'"{address}"' for address in endpoints.contact_points)
    site = make_site(
        {
            "10.0.0.9:6379/0": address,
            '"10.0.0.1", "10.0.0.2"': points,
            '"dc1"': f'"{endpoints.local_dc}"',
        },
        redis_password=secret,
    )
    # Every host mounts the share, which the configuration allows jobs to read.
    rehearsal = Rehearsal(
        site,
        (
            dataclasses.replace(one, mounts={**one.mounts, "/mnt/share": "shared mount"})
            for one in unit_commands()
        ),
    )
    command = rehearsal.commands["systemd ringhaul-worker@.service ExecStart"]
    bring_to_cache(site.mount(command, "/var/cache/ringhaul") / "numba")
    with ExitStack() as stack:
        worker = rehearsal.start(stack, "ringhaul worker")
        rehearsal.start(stack, "ringhaul flower")
        rehearsal.start_beat(stack)
        wait_until(lambda: answers(site.flower_port), "Flower")
        wait_for_worker(broker_url, worker.log)
        # A load by hand, on one of the hosts, from a shared mount.
        load = dataclasses.replace(
            command,
            argv=("ringhaul", "load", "/mnt/share/orders.csv", "--table", "shop.orders"),
        )
        write_rows(site.mount(load, "/mnt/share") / "orders.csv")
        rehearsal.once(load)
        assert_table(cassandra_session, f"{keyspace}.orders", "id, name", ROWS)
        with redis.Redis.from_url(broker_url) as client:
            wait_until(lambda: has_ticked(client), "beat's first job")
        rehearsal.stop()
    assert rehearsal.left_out() == set()


def test_the_kubernetes_manifests_scale_from_nothing(
    make_site: MakeSite, endpoints: Endpoints, cassandra_session: Session, keyspace: str
) -> None:
    # 1. Broker and Flower are up; there is no worker.
    # 2. A Job's pod plans and splits a load, and waits.
    # 3. The scaler sees open units: it would start a worker, and the test starts one.
    # 4. The load is done, the pod ends, and the scaler sees no open unit.
    # 5. Beat comes up, and its first job is done.
    points = ", ".join(f'"{address}"' for address in endpoints.contact_points)
    local_dc = f'"{endpoints.local_dc}"'
    site = make_site({'"cassandra.cassandra.svc"': points, '"datacenter1"': local_dc})
    rehearsal = Rehearsal(site, manifest_commands())
    with ExitStack() as stack:
        rehearsal.start(stack, "valkey-server")
        rehearsal.wait()
        rehearsal.start(stack, "ringhaul flower")
        client = stack.enter_context(redis.Redis(port=site.redis_port, password=PASSWORD))
        assert scaler_reading(client) == 0
        load = rehearsal.commands["k8s Job load"]
        write_rows(site.mount(load, "/data") / "orders.csv")
        rehearsal.ran.add(load.name)
        pod = stack.enter_context(site.started(load))
        wait_until(lambda: pod.read() and scaler_reading(client) > 0, "open units")
        rehearsal.start(stack, "ringhaul worker")
        assert pod.process.wait(120) == 0, pod.log.read_text()
        assert_table(cassandra_session, f"{keyspace}.orders", "id, name", ROWS)
        rehearsal.wait()
        wait_until(lambda: scaler_reading(client) == 0, "nothing open")
        rehearsal.start_beat(stack)
        wait_until(lambda: has_ticked(client), "beat's first job")
        rehearsal.stop()
    assert rehearsal.left_out() == set()


def scaler_reading(client: redis.Redis) -> int:
    """Return what KEDA's Redis scaler reads: the size of the trigger's key, by the key's type."""
    (trigger,) = scaled_object()["spec"]["triggers"]
    key = trigger["metadata"]["listName"]
    kind = client.type(key).decode()
    sizes = {"none": client.llen, "list": client.llen, "set": client.scard, "zset": client.zcard}
    return int(sizes[kind](key))


def scaled_object() -> dict[str, Any]:
    (found,) = (one for _, one in manifests() if one["kind"] == "ScaledObject")
    return found


def test_a_probe_finds_a_worker_that_hangs_and_one_without_redis(
    make_site: MakeSite, endpoints: Endpoints
) -> None:
    # 1. A worker is up, its heartbeat file fresh.
    # 2. SIGSTOP: its file becomes stale, and stays stale until the worker continues.
    # 3. Redis dies: the file becomes stale, although the worker lives, until Redis is back.
    with ExitStack() as stack:
        valkey = stack.enter_context(running_valkey())
        secret, _, address = valkey.url.removeprefix("redis://:").partition("@")
        points = ", ".join(f'"{address}"' for address in endpoints.contact_points)
        site = make_site(
            {"redis:6379/0": address, '"cassandra.cassandra.svc"': points}, redis_password=secret
        )
        rehearsal = Rehearsal(site, manifest_commands())
        worker = rehearsal.start(stack, "ringhaul worker")
        rehearsal.wait()
        (command,) = (one for one in rehearsal.commands.values() if one.name.endswith(" worker"))
        beats = site.mount(command, "/tmp") / "heartbeat"
        probe = rehearsal.probes(command)[0]

        def age() -> None:
            """Set the file's time one minute back."""
            stamp = time.time() - 61
            os.utime(beats, (stamp, stamp))

        worker.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: psutil.Process(worker.process.pid).status() == "stopped", "a stop")
        age()
        assert not rehearsal.well(probe)
        worker.process.send_signal(signal.SIGCONT)
        wait_until(lambda: rehearsal.well(probe), "a worker that continues")

        os.kill(valkey.pid or 0, signal.SIGKILL)
        worker.says("Cannot connect to redis")
        age()
        tries = worker.read().count("Cannot connect to redis")
        wait_until(lambda: worker.read().count("Cannot connect to redis") > tries, "another try")
        assert not rehearsal.well(probe)
        restart_valkey(valkey)
        wait_until(lambda: rehearsal.well(probe), "a worker that has Redis again")
        rehearsal.stop()
        assert not beats.exists(), "a worker that has stopped is not alive"


def test_the_image_is_built_of_what_the_dockerfile_copies(tmp_path: Path) -> None:
    """Run the build's lines in a copy of its context, and install into a separate folder."""
    source, target = tmp_path / "src", tmp_path / "image"
    source.mkdir()
    copy_context(source)
    pip = f"{SCRIPTS}/pip install --quiet --disable-pip-version-check --no-index"
    # The pinned packages are installed already: nothing is downloaded.
    swaps = {
        "/opt/ringhaul/bin/pip install --require-hashes": f"{pip} --dry-run --require-hashes",
        "/opt/ringhaul/bin/pip install --no-deps": f"{pip} --target {target} --no-deps",
        "/opt/ringhaul/bin/python": sys.executable,
        "/opt/ringhaul/kernels": f"{tmp_path}/kernels",
        "python -m venv /opt/ringhaul": f"{sys.executable} -m venv --without-pip {tmp_path}/venv",
    }
    env = {"PATH": f"{SCRIPTS}:/usr/bin:/bin", "PYTHONPATH": str(target), "HOME": str(tmp_path)}
    # Other tests compile the kernels; here it would take half of the test's time.
    env["NUMBA_DISABLE_JIT"] = "1"
    env |= dict(shlex.split(line)[0].split("=", 1) for line in dockerfile_instructions("ARG"))
    for command in dockerfile_commands():
        if command.name in NOT_RUN:
            continue
        *options, line = command.argv
        for original, replacement in swaps.items():
            line = line.replace(original, replacement)
        argv = [*options, line]
        if command.name == "docker CMD":
            argv = [str(target / "bin" / command.argv[0]), *command.argv[1:]]
        assert "/opt/" not in line, f"{command.name}: it would be done to this host: {line}"
        done = subprocess.run(
            argv, env=env, cwd=source, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{command.name}: {line}\n{done.stdout}{done.stderr}"
        assert "cannot be loaded" not in done.stderr, f"{command.name}: {done.stderr}"
    assert "Usage: ringhaul" in done.stdout
    assert "cassandra-driver" in (source / "deploy/requirements/core.txt").read_text()
    # Data files are installed, too: the ledger's scripts, the example of the settings.
    for package in ("ringhaul", "config", "tasks", "producer"):
        wanted = {path for path in data_files(source / package) if path.suffix != ".pyc"}
        installed = target if package == "ringhaul" else target / "ringhaul" / "_packages"
        found = set(data_files(installed / package))
        assert wanted == {path for path in found if path.parts[0] != "_packages"}


def copy_context(target: Path) -> None:
    """Copy what COPY puts into the build's first stage."""
    for line in dockerfile_instructions("COPY"):
        *sources, folder = line.split()
        if "--from" in line:
            continue
        for name in sources:
            if (ROOT / name).is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, target / folder, ignore=ignore)
            else:
                place = target / folder.lstrip("/")  # an absolute path would be one of this host
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)


def data_files(folder: Path) -> list[Path]:
    return [
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]


def has_ticked(client: redis.Redis) -> bool:
    """Return whether one of beat's jobs is done."""
    runs = client.hvals(keys.schedule_key("tick", "records"))
    return any(json.loads(run)["state"] == "DONE" for run in runs)
