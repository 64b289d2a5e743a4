"""`ringhaul doctor` finds planted faults and says what to do; a healthy stack has none.

Each fault is real: a server that is down or set wrongly, a worker with other settings, a full disk.
A worker in another folder, under another host name and with its own settings stands for another
host.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from cassandra.cluster import Session

import ringhaul
from producer.local.stack import Endpoints, Stack
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.ports import closed_port
from tests.services import running_valkey

ROOT = Path(__file__).parents[2]
PASSWORD = "a-sentinel-word-of-the-broker"
#: Generous for a machine that is busy with other tests; alone it takes about 2 s.
HEALTHY_S_MAX = 20.0
#: Whatever hangs, the command ends.
HANGING_S_MAX = 60.0

#: Files of compiled modules and kernels that another process writes, and renames when complete.
BEING_WRITTEN = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")

Checks = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def valkey() -> Iterator[EmbeddedValkey]:
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture(scope="module")
def settings(
    endpoints: Endpoints, valkey: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    return fleet_settings(endpoints, tmp_path_factory.mktemp("doctor") / "state", valkey.url)


@pytest.fixture(scope="module")
def host_1(settings: dict[str, str], valkey: EmbeddedValkey, tmp_path_factory: Any) -> Path:
    """The folder of a worker on `host-1`, up for all tests of this module."""
    folder: Path = tmp_path_factory.mktemp("host-1")
    return folder


@pytest.fixture(scope="module", autouse=True)
def worker_1(settings: dict[str, str], valkey: EmbeddedValkey, host_1: Path) -> Iterator[None]:
    with worker("host-1", settings, host_1, valkey):
        yield


@pytest.fixture
def command(settings: dict[str, str], tmp_path: Path) -> Ringhaul:
    """The command, in a separate folder."""
    return Ringhaul(settings, tmp_path)


@contextmanager
def worker(
    host: str, env: dict[str, str], folder: Path, valkey: EmbeddedValkey, *limits: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker under another host name. `limits`: shell commands before its start."""
    argv = Ringhaul(env, folder).argv("worker", "-c", "1", f"--hostname=w@{host}")
    shell = " && ".join([*limits, f"exec {shlex.join(argv)}"])
    log = folder / f"{host}.log"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RINGHAUL_")}
    with log.open("wb") as out, redis.Redis.from_url(valkey.url) as client:
        process = subprocess.Popen(
            ["sh", "-c", shell], env=clean | env, cwd=folder, stdout=out, stderr=out
        )
        workers = Workers(Caller(client))
        try:
            there = lambda: host in {one.host for one in workers.alive()}  # noqa: E731
            wait_until(there, f"the worker; see {log}")
            yield process
        finally:
            me = psutil.Process(process.pid)
            for one in (*me.children(recursive=True), me):
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            process.wait()
            client.delete(keys.WORKERS)  # the others are back with their next heartbeat
            wait_until(lambda: workers.slots() == 1 or host == "host-1", "the other worker")


def doctor(command: Ringhaul, *args: object, code: int, **env: str) -> Checks:
    """Run it and return its checks that are not ok, by what they are about and their name."""
    done = command.run("doctor", "--json", *args, **env)
    assert done.code == code, done
    assert PASSWORD not in done.out + done.err
    document = json.loads(done.out)
    assert document["exit_code"] == code
    found = {
        (check["about"], check["check"]): check
        for check in document["checks"]
        if check["level"] != "ok"
    }
    assert all(check["text"] for check in found.values())
    assert all(
        check["advice"] or ":" in check["text"] or "?" in check["text"] or "(" in check["text"]
        for check in found.values()
        if check["level"] in ("warn", "fail")
    ), found
    return found


def test_a_healthy_stack_is_clean(command: Ringhaul) -> None:
    (command.cwd / "x.csv").write_text("id\n1\n")
    began = time.monotonic()
    done = command.run(
        *("doctor", "--json", "--input", command.cwd / "x.csv", "-o", command.cwd / "out")
    )
    took_s = time.monotonic() - began
    document = json.loads(done.out)
    assert done.code == 0, done
    levels = {check["level"] for check in document["checks"]}
    assert levels <= {"ok", "unchecked"}, done.out
    print(f"\na healthy stack: {took_s:.1f} s with the start, {document['seconds']} s without")
    assert took_s < HEALTHY_S_MAX
    names = {(check["about"], check["check"]): check["text"] for check in document["checks"]}
    assert {about for about, _ in names} == {"machine", "broker", "cluster", "workers", "files"}
    # This host, the broker, the node, and the worker's host: really measured, and on one kernel.
    assert names["machine", "clocks"].startswith("4 clocks are within ")
    assert names["workers", "cluster"].startswith("every worker reaches ")
    assert names["files", "hosts"].endswith("sees the inputs and the output")
    assert not (command.cwd / "out").exists(), "nothing is left behind"


def test_the_lines_for_people_are_short_and_whole(command: Ringhaul) -> None:
    done = command.run("doctor")
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert all(line.startswith((" ok  ", " ?   ")) for line in lines) and len(lines) > 20


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        (("maxmemory-policy", "allkeys-lru"), "eviction", "set noeviction"),
        (("appendonly", "no"), "persistence", "a restart loses running jobs"),
    ],
    ids=["eviction", "persistence"],
)
def test_a_broker_that_loses_jobs(
    command: Ringhaul, valkey: EmbeddedValkey, change: tuple[str, str], check: str, words: str
) -> None:
    name, value = change
    with redis.Redis.from_url(valkey.url) as client:
        before = client.config_get(name)[name]
        client.config_set(name, value)
        try:
            found = doctor(command, code=1)
        finally:
            client.config_set(name, before)
    assert list(found) == [("broker", check)]
    assert value in found["broker", check]["text"] and words in found["broker", check]["advice"]


def test_a_broker_that_is_down(command: Ringhaul) -> None:
    with closed_port() as port:
        url = f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
        found = doctor(command, code=4, RINGHAUL_BROKER_URL=url)
    assert set(found) == {("broker", "address"), ("workers", "up")}
    assert "Connection refused" in found["broker", "address"]["text"]
    assert "broker.url" in found["broker", "address"]["text"]
    assert found["workers", "up"]["level"] == "unchecked"


def test_servers_that_do_not_answer_hold_up_nothing_else(command: Ringhaul) -> None:
    """They take connections and stay silent, as behind a firewall that drops packets."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        began = time.monotonic()
        port = deaf.getsockname()[1]
        env = {
            "RINGHAUL_BROKER_URL": f"redis://127.0.0.1:{port}/0",
            "RINGHAUL_CLUSTER_PORT": str(port),
        }
        found = doctor(command, "-o", command.cwd / "file" / "out", code=4, **env)
        assert time.monotonic() - began < HANGING_S_MAX
    assert "no answer within 8 s" in found["broker", "address"]["text"]
    assert "127.0.0.1" in found["cluster", "address"]["text"]
    unchecked = {("workers", "up"), ("machine", "clocks")}
    assert set(found) == {("broker", "address"), ("cluster", "address")} | unchecked
    assert {found[name]["level"] for name in unchecked} == {"unchecked"}


def test_a_wrong_password_of_the_broker(command: Ringhaul, valkey: EmbeddedValkey) -> None:
    url = f"redis://:{PASSWORD}@127.0.0.1:{valkey.port}/0"
    found = doctor(command, code=4, RINGHAUL_BROKER_URL=url)
    assert "Check the user, password and access rules" in found["broker", "address"]["text"]


def test_a_user_of_the_broker_without_rights(command: Ringhaul, valkey: EmbeddedValkey) -> None:
    with redis.Redis.from_url(valkey.url) as admin:
        rules = ("~ringhaul:*", "&*", "+@all", "-brpop", "-zadd")
        admin.execute_command("ACL", "SETUSER", "meagre", "reset", "on", f">{PASSWORD}", *rules)
        before = admin.dbsize()
        url = f"redis://meagre:{PASSWORD}@127.0.0.1:{valkey.port}/0"
        found = doctor(command, code=4, RINGHAUL_BROKER_URL=url)
        assert admin.dbsize() <= before and not admin.keys("ringhaul:{doctor}*")
    rights = found["broker", "rights"]
    assert rights["text"] == "user meagre may not run ZADD, BRPOP"
    assert "deploy/redis-users.acl" in rights["advice"]


def test_a_cluster_that_cannot_be_reached_from_here(command: Ringhaul) -> None:
    with closed_port() as port:
        found = doctor(command, code=4, RINGHAUL_CLUSTER_PORT=str(port))
    address = found["cluster", "address"]
    assert "Connection refused" in address["text"] and "--contact-points" in address["text"]
    # The workers' hosts still reach it.
    assert ("workers", "cluster") not in found


def test_a_data_centre_that_does_not_exist(command: Ringhaul) -> None:
    found = doctor(command, "--local-dc", "datacenter9", code=4)
    text = found["cluster", "address"]["text"]
    assert "no data centre 'datacenter9' in this cluster; it has datacenter1" in text


def test_too_few_replicas_for_the_consistency_level(command: Ringhaul, keyspace: str) -> None:
    level = {"RINGHAUL_CLUSTER_CONSISTENCY": "THREE"}
    words = "consistency THREE needs 3 replicas, keyspace"
    found = doctor(command, code=1, **level)
    assert words in found["cluster", "replication"]["text"]
    found = doctor(command, "--keyspace", keyspace, code=4, **level)
    assert f"{words} {keyspace} has 1" in found["cluster", "replication"]["text"]
    assert "raise the replication" in found["cluster", "replication"]["text"]
    found = doctor(command, "--keyspace", "nokeyspace", code=4)
    assert "no keyspace nokeyspace" in found["cluster", "replication"]["text"]


def test_a_host_with_everything_wrong(
    command: Ringhaul,
    settings: dict[str, str],
    valkey: EmbeddedValkey,
    tmp_path: Path,
    host_1: Path,
) -> None:
    """Another version, other settings, no way to Cassandra, few descriptors, other files, no room
    for its state."""
    folder = tmp_path / "host-2"
    tree = folder / "tree"
    for package in ("ringhaul", "config", "tasks", "producer"):
        shutil.copytree(ROOT / package, tree / package, ignore=BEING_WRITTEN)
    init = tree / "ringhaul" / "__init__.py"
    init.write_text(init.read_text().replace(ringhaul.__version__, "0.0.7"))
    (folder / "state").write_text("a file")
    (command.cwd / "here").mkdir()
    (command.cwd / "x.csv").write_text("id\n1\n")
    (host_1 / "x.csv").write_text("id\n1\n")
    env = settings | {
        "PYTHONPATH": str(tree),
        "RINGHAUL_CLUSTER_PORT": "1",  # without a listener
        "RINGHAUL_BROKER_VISIBILITY_TIMEOUT_S": "9000",
        "RINGHAUL_TRANSFORM_ALLOWED": "etl:*",
        "RINGHAUL_STATE_DIR": str(folder / "state"),
        "TMPDIR": str(folder),  # it is killed, and has no state folder in which others clean up
    }
    here = "/proc/self/cwd"  # another folder for each process
    with worker("host-2", env, folder, valkey, "ulimit -n 200"):
        found = doctor(command, "--input", f"{here}/x.csv", code=4)
    assert set(found) == {
        ("workers", name)
        for name in ("versions", "visibility", "settings", "cluster", "descriptors", "disks")
    } | {("files", "hosts")}
    for check in found.values():
        assert "host-2" in check["text"] and "host-1" not in check["text"], check
        assert check["advice"], check
    text = {name: check["text"] for (_, name), check in found.items()}
    assert f"ringhaul 0.0.7 (here {ringhaul.__version__})" in text["versions"]
    assert text["visibility"] == "host-2: 9000 s; this host: 21600 s"
    assert "transform.allowed = etl:* (others nothing)" in text["settings"]
    assert "Connection refused" in text["cluster"]
    assert "200 open files" in text["descriptors"]
    assert f"{folder}/state cannot be written: it is a file" in text["disks"]
    assert f"{here}/x.csv: No such file or directory" in text["hosts"]


def test_a_worker_that_hangs_is_named(
    command: Ringhaul, settings: dict[str, str], valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    (tmp_path / "host-2").mkdir()
    env = settings | {"RINGHAUL_WORKER_SWEEP_S": "30"}  # a heartbeat that lasts
    with worker("host-2", env, tmp_path / "host-2", valkey) as process:
        process.send_signal(signal.SIGSTOP)
        found = doctor(command, code=1)
        process.send_signal(signal.SIGCONT)
    assert found["workers", "reports"]["text"] == "host-2: it does not answer"


def test_files_that_are_not_there(command: Ringhaul) -> None:
    (command.cwd / "file").write_text("")
    found = doctor(command, "--input", "none.csv", "-o", command.cwd / "file" / "out", code=4)
    assert set(found) == {("files", "inputs"), ("files", "output")}
    assert "none.csv" in found["files", "inputs"]["text"]
    assert "cannot be written: Not a directory" in found["files", "output"]["text"]


def test_an_output_that_other_hosts_do_not_see(command: Ringhaul, host_1: Path) -> None:
    found = doctor(command, "-o", "/proc/self/cwd/out", code=4)
    assert "host-1 does not see /proc/self/cwd/out" in found["files", "hosts"]["text"]
    assert "use a mount that all hosts share" in found["files", "hosts"]["advice"]
    assert not (command.cwd / "out").exists()


def test_a_state_folder_that_is_nearly_full(command: Ringhaul, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not permitted here")
    state = tmp_path / "state"
    state.mkdir()
    mount = f"mount -t tmpfs -o size=1m none {shlex.quote(str(state))}"
    found = limited(command, mount, RINGHAUL_STATE_DIR=str(state))
    disks = found["machine", "disks"]
    assert disks["level"] == "fail" and "1020.0 KiB of room left" in disks["text"].replace(
        "1.0 MiB", "1020.0 KiB"
    )
    assert "state_dir" in disks["advice"]


def test_few_descriptors(command: Ringhaul) -> None:
    found = limited(command, "ulimit -n 250")
    assert found["machine", "descriptors"]["level"] == "fail"
    assert "250 open files" in found["machine", "descriptors"]["text"]
    assert "ulimit -n" in found["machine", "descriptors"]["advice"]


def limited(command: Ringhaul, before: str, **env: str) -> Checks:
    """Run it after a shell command, in a mount namespace if that is a mount."""
    shell = f"{before} && exec {shlex.join(command.argv('doctor', '--json'))}"
    prefix = ["unshare", "--mount"] if before.startswith("mount") else []
    done = subprocess.run(
        [*prefix, "sh", "-c", shell],
        env=command.env | env,
        cwd=command.cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 4, done
    checks = json.loads(done.stdout)["checks"]
    return {(check["about"], check["check"]): check for check in checks}


def test_the_password_of_the_broker_is_nowhere(
    settings: dict[str, str], command: Ringhaul, valkey: EmbeddedValkey
) -> None:
    """Neither in what it prints nor, while workers answer, in Redis."""
    password = valkey.password_file.read_text().strip()
    with redis.Redis.from_url(valkey.url) as client, client.monitor() as monitor:
        done = command.run("doctor", "--json")
        assert done.code == 0, done
        client.publish("end", "of the monitor")
        sent = []
        for entry in monitor.listen():
            sent.append(entry["command"])
            if entry["command"].startswith("PUBLISH end"):
                break
    assert any("host-1" in line and "versions" in line for line in sent), "reports were sent"
    assert not any(password in line for line in sent if not line.startswith(("AUTH", "HELLO")))
    assert password not in done.out + done.err
    with redis.Redis.from_url(valkey.url) as client:
        assert client.keys("ringhaul:look*") == [], "nothing is left behind"


def test_the_local_stack_needs_no_worker(command: Ringhaul, stack: Stack) -> None:
    """Commands use its Valkey, and start their own workers."""
    env = {name: text for name, text in command.env.items() if not name.startswith("RINGHAUL_")}
    folder = stack.valkey.password_file.parents[1]
    local = Ringhaul(env | {"RINGHAUL_STATE_DIR": str(folder)}, command.cwd)
    done = local.run("doctor")
    assert done.code == 0, done
    assert "each command starts its own" in done.out and "noeviction" in done.out


def test_without_a_broker_the_rest_is_checked(
    command: Ringhaul, cassandra_session: Session
) -> None:
    done = command.run("doctor", "--broker", "none")
    assert done.code == 0, done
    assert "each command starts its own" in done.out and "datacenter1" in done.out
