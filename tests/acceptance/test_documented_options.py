"""The examples of docs/reference for the options of every job work as documented.

`test_documented_reads.py` checks that each of these options has an example.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import TIMEOUT_S, Finished, Ringhaul, bash_function, wait_until
from tests.acceptance.documented import OF_EVERY_JOB, csv_rows, in_keyspace, listed, run_line
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import create_table
from tests.secure_bundle import managed_cluster
from tests.terminal import on_a_terminal
from tests.unit.test_docs import shell_lines

ROWS = 600
#: A port without a listener.
NOBODY = "1"


@pytest.fixture(scope="module")
def shop(cassandra_session: Session, module_keyspace: str) -> str:
    """A keyspace with the examples' table."""
    orders = create_table(
        cassandra_session, module_keyspace, "id int PRIMARY KEY, total bigint", "orders"
    )
    insert = cassandra_session.prepare(f"INSERT INTO {orders} (id, total) VALUES (?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, [(n, n) for n in range(ROWS)])
    return module_keyspace


@dataclass(frozen=True)
class Desk:
    """Where an example is typed: its folder, its settings and its keyspace."""

    fleet: Ringhaul
    endpoints: Endpoints
    broker: EmbeddedValkey
    shop: str

    @property
    def folder(self) -> Path:
        return self.fleet.cwd

    def run(self, line: str, *, without: tuple[str, ...] = (), **env: str) -> Finished:
        """Run a line with `env` added to the environment, minus the variables whose names begin
        with one of `without`."""
        kept = {k: v for k, v in self.fleet.env.items() if not without or not k.startswith(without)}
        return run_line(Ringhaul(kept | env, self.folder), self.shop, line)

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs of this example's keyspace on the fleet's broker, the newest first."""
        listed_jobs = json.loads(self.fleet.run("status", "--json", "--limit", 1000).out)
        return [job for job in listed_jobs if self.shop in job["table"]]

    def status(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.fleet.run("status", job, "--json").out)
        return found


@pytest.fixture
def desk(fleet: Ringhaul, endpoints: Endpoints, fleet_broker: EmbeddedValkey, shop: str) -> Desk:
    return Desk(fleet, endpoints, fleet_broker, shop)


def assert_counted(done: Finished) -> None:
    assert done.code == 0 and csv_rows(done.out) == [{"count": str(ROWS)}], done


def messages(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def takes_its_share(desk: Desk, line: str) -> None:
    assert desk.run(line).code == 0
    assert listed(desk.folder / "night")[0] == ROWS
    job = desk.jobs()[0]
    assert job["priority"] == "low"
    assert desk.status(job["job"])["limits"]["rows_per_s"] == 20_000


def has_a_limit_in_bytes(desk: Desk, line: str) -> None:
    assert_counted(desk.run(line))
    assert desk.status(desk.jobs()[0]["job"])["limits"]["bytes_per_s"] == 50_000_000


def is_one_job(desk: Desk, line: str) -> None:
    first, second = desk.run(line), desk.run(line)
    assert (first.code, second.code) == (0, 0), (first, second)
    assert listed(desk.folder / "june")[0] == ROWS
    named = [job for job in desk.jobs() if job["job"] == "orders-2024-06"]
    assert [(job["state"], job["rows"]) for job in named] == [("COMPLETE", ROWS)]


def is_quiet(desk: Desk, line: str) -> None:
    done = desk.run(line)
    assert_counted(done)
    assert done.err == ""
    summary = json.loads((desk.folder / "count.json").read_text())
    assert (summary["kind"], summary["state"], summary["rows_read"]) == ("count", "COMPLETE", ROWS)


def prints_messages(desk: Desk, line: str) -> None:
    done = desk.run(line)
    assert done.code == 0, done
    printed = messages(desk.folder / "messages.jsonl")
    kinds = [message["message_type"] for message in printed]
    assert kinds[0] == "status" and kinds.index("summary") == len(printed) - 1
    assert (printed[-1]["rows"], printed[-1]["exit_code"]) == (ROWS, 0)


def writes_only_the_summary(desk: Desk, line: str) -> None:
    done = desk.run(line)
    assert done.code == 0, done
    (summary,) = messages(desk.folder / "summary.json")
    assert (summary["message_type"], summary["rows"]) == ("summary", ROWS)


def ends_with_ctrl_c(desk: Desk, line: str) -> None:
    # Given the example, whose units wait
    hold = Hold.of(desk.fleet.env)
    hold.from_unit(0)
    shell = subprocess.Popen(
        ["bash", "-c", bash_function() + in_keyspace(desk.shop, line)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=desk.fleet.env,
        cwd=desk.folder,
        start_new_session=True,
    )
    try:
        with connect(desk.broker.url) as client:
            ledger = Ledger(client)

            def at_work() -> bool:
                """Return whether a unit is at work: its command publishes one once it watches."""
                ours = [job for job in ledger.jobs(5) if desk.shop in job.labels.get("table", "")]
                return any(job.leased and not job.finished for job in ours)

            wait_until(at_work, "a unit of the job")
        # When Ctrl-C is typed
        os.killpg(shell.pid, signal.SIGINT)
        code = shell.wait(TIMEOUT_S)
    finally:
        hold.release()
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    # Then the job is over, although it has a broker
    assert (code, desk.jobs()[0]["state"]) == (130, "CANCELLED")


def has_one_process(desk: Desk, line: str) -> None:
    done = desk.run(line)
    assert done.code == 0, done
    found = csv_rows((desk.folder / "orders.csv").read_text())
    assert sorted(int(row["id"]) for row in found) == list(range(ROWS))
    summary = desk.status(desk.jobs()[0]["job"])
    assert summary["units"] > 1 and len(summary["workers"]) == 1, summary


def finds_the_cluster(desk: Desk, line: str) -> None:
    # Given settings each of which fails alone
    nowhere = {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": "no-host.invalid",
        "RINGHAUL_CLUSTER_PORT": NOBODY,
        "RINGHAUL_CLUSTER_LOCAL_DC": "dc9",
    }
    ends = desk.endpoints
    line = line.replace("10.0.0.21,10.0.0.22", ",".join(ends.contact_points))
    line = line.replace("9042", str(ends.port)).replace("dc1", ends.local_dc)
    assert_counted(desk.run(line, **nowhere))


def reads_the_password(desk: Desk, line: str) -> None:
    # This node requires no password; test_login.py covers one that does. Each option is refused
    # without the other one.
    (desk.folder / "pw.txt").write_text("secret\n")
    assert_counted(desk.run(line))
    (desk.folder / "pw.txt").unlink()
    done = desk.run(line)
    assert done.code == 2 and "cluster.password_file: cannot read" in done.err, done


def asks_for_the_password(desk: Desk, line: str) -> None:
    # The same: test_login.py covers a node that does.
    words = shlex.split(line.partition("#")[0].replace("shop.", f"{desk.shop}."))[1:]
    argv = desk.fleet.argv(*words)
    code, screen = on_a_terminal(argv, "secret\n", desk.fleet.env, desk.folder)
    assert code == 0, screen
    assert "Password of app: " in screen and "secret" not in screen
    assert f" {ROWS}" in screen


def reads_the_cqlshrc(desk: Desk, line: str) -> None:
    # Given settings each of which fails alone
    nowhere = {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": "no-host.invalid",
        "RINGHAUL_CLUSTER_PORT": NOBODY,
    }
    (desk.folder / "cqlshrc").write_text(
        f"[connection]\nhostname = {desk.endpoints.contact_points[0]}\n"
        f"port = {desk.endpoints.port}\n[authentication]\ncredentials = secrets\n"
    )
    (desk.folder / "secrets").write_text(
        "[PlainTextAuthProvider]\nusername = app\npassword = hunter2\n"
    )
    done = desk.run(line, **nowhere)
    assert_counted(done)
    assert "hunter2" not in done.out + done.err
    # An option of the command line wins
    done = desk.run(f"{line.partition('#')[0]} --port {NOBODY}", **nowhere)
    assert done.code == 4, done


def goes_through_the_proxy(desk: Desk, line: str) -> None:
    # Given the bundle in the current folder, and contact points that lead nowhere
    (node,) = zip(desk.endpoints.contact_points, desk.endpoints.host_ids, strict=True)
    nodes = {node[1]: (node[0], desk.endpoints.port)}
    with managed_cluster(desk.folder, nodes) as managed:
        assert_counted(desk.run(line, RINGHAUL_CLUSTER_CONTACT_POINTS="no-host.invalid"))
        assert managed.proxy.connections.total() > 0


def goes_to_the_broker(desk: Desk, line: str) -> None:
    # Given a broker that does not answer, and the password of the one that does
    address = urlsplit(desk.broker.url)
    before = len(desk.jobs())
    done = desk.run(
        line.replace("10.0.0.9:6379", f"{address.hostname}:{address.port}"),
        RINGHAUL_BROKER_URL=f"redis://127.0.0.1:{NOBODY}/0",
        RINGHAUL_BROKER_PASSWORD_FILE=str(desk.broker.password_file),
    )
    assert_counted(done)
    assert len(desk.jobs()) == before + 1


def has_its_own_workers(desk: Desk, line: str) -> None:
    before = len(desk.jobs())
    assert_counted(desk.run(line))
    assert len(desk.jobs()) == before


def writes_a_report(desk: Desk, line: str) -> None:
    done = desk.run(line)
    assert done.code == 0, done
    page = (desk.folder / "report.html").read_text()
    assert f"{ROWS:,}" in page and desk.jobs()[0]["job"] in page


def reads_the_other_file(desk: Desk, line: str) -> None:
    # Given a ringhaul.toml that cannot work, another one that can, and an empty environment
    (desk.folder / "ringhaul.toml").write_text(f"[cluster]\nport = {NOBODY}\n")
    ends, address = desk.endpoints, urlsplit(desk.broker.url)
    (desk.folder / "staging.toml").write_text(
        f"[broker]\nurl = 'redis://{address.hostname}:{address.port}/0'\n"
        f"password_file = '{desk.broker.password_file}'\n"
        f"[cluster]\ncontact_points = {list(ends.contact_points)}\nport = {ends.port}\n"
    )
    before = len(desk.jobs())
    assert_counted(desk.run(line, without=("RINGHAUL_BROKER", "RINGHAUL_CLUSTER")))
    assert len(desk.jobs()) == before + 1


#: A part of the line that identifies an example -> its check.
CHECKS: dict[str, Callable[[Desk, str], None]] = {
    "--priority": takes_its_share,
    "MB/s": has_a_limit_in_bytes,
    "--job-id": is_one_job,
    "-q": is_quiet,
    "--json > ": prints_messages,
    "--json --progress none": writes_only_the_summary,
    "--on-interrupt": ends_with_ctrl_c,
    "-c 1": has_one_process,
    "--contact-points": finds_the_cluster,
    " -p ": asks_for_the_password,
    "--password-file": reads_the_password,
    "--broker redis:": goes_to_the_broker,
    "--broker none": has_its_own_workers,
    "--config": reads_the_other_file,
    "--cqlshrc": reads_the_cqlshrc,
    "--secure-connect-bundle": goes_through_the_proxy,
    "--report": writes_a_report,
}


@pytest.mark.parametrize("line", list(shell_lines(OF_EVERY_JOB)))
def test_an_example_of_an_option_works_as_documented(desk: Desk, line: str) -> None:
    (check,) = (check for part, check in CHECKS.items() if part in line)
    check(desk, line)
