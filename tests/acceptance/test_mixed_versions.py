"""A fleet while its hosts are upgraded one by one: workers of several versions, one job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.figures.unit_detail import host_work, read_facts
from producer.local.stack import Endpoints
from ringhaul.ledger.connection import connect
from ringhaul.ledger.history import History
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_table
from tests.services import running_valkey

ROWS = [(number, f"a{number}") for number in range(6000)]
#: Makes a process one of another version.
OTHER_VERSION = """
import ringhaul
from ringhaul.ledger import formats
ringhaul.__version__ = {version!r}
formats.JOB_FORMAT = {newest}
formats.READABLE = formats.Readable({oldest}, {newest})
"""


class Mix:
    """A fleet on a broker of its own, with workers of any version."""

    def __init__(self, env: dict[str, str], folder: Path, stack: ExitStack) -> None:
        self._env, self._folder, self._stack = env, folder, stack
        self.client = connect(env["RINGHAUL_BROKER_URL"])
        self.ledger = Ledger(self.client)

    def command(self, version: str, oldest: int, newest: int) -> Ringhaul:
        """Return the command of a version that writes jobs of the `newest` format."""
        patch = self._folder / f"patch-{version}"
        patch.mkdir(exist_ok=True)
        text = OTHER_VERSION.format(version=version, oldest=oldest, newest=newest)
        (patch / "sitecustomize.py").write_text(text)
        return Ringhaul(self._env | {"PYTHONPATH": str(patch)}, self._folder)

    def start(self, host: str, version: str, oldest: int, newest: int) -> None:
        """Start a worker with two processes that reads jobs of these formats."""
        log, name = self._folder / f"{host}.log", f"worker@{host}"
        command = self.command(version, oldest, newest)
        self._stack.enter_context(command.started("worker", "-c", 2, "--hostname", name, log=log))
        wait_until(lambda: host in self.alive(), f"the worker; see {log}")

    def alive(self) -> dict[str, str]:
        """Return host -> version of the live workers."""
        return {one.host: one.version for one in Workers(self.ledger.caller).alive()}


@pytest.fixture
def mix(endpoints: Endpoints, tmp_path: Path) -> Iterator[Mix]:
    with running_valkey() as valkey, ExitStack() as stack:
        found = Mix(fleet_settings(endpoints, tmp_path / "state", valkey.url), tmp_path, stack)
        yield found
        found.client.close()


def write_rows(folder: Path) -> None:
    (folder / "in.csv").write_text("id,a\n" + "".join(f"{id},{a}\n" for id, a in ROWS))


def released(mix: Mix, job: str) -> list[str]:
    """Return the reasons of units that were handed back."""
    events = History(mix.ledger.caller).events(job)
    return [event.text for event in events if event.kind == "unit released"]


@pytest.mark.parametrize("wrote", ["older", "newer"])
def test_only_workers_that_can_read_a_job_do_its_units(
    mix: Mix, cassandra_session: Session, keyspace: str, tmp_path: Path, wrote: str
) -> None:
    # Given workers of two versions, one of which cannot read what a command writes
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, a text)")
    write_rows(tmp_path)
    mix.start("host1", "1.0", 1, 1)
    mix.start("host2", "2.0", 2, 2)
    reader, other = ("host1", "host2") if wrote == "older" else ("host2", "host1")
    formats = (1, 1) if wrote == "older" else (1, 2)
    command = mix.command("cmd", *formats)

    # When a job of many units runs
    load = ("load", "in.csv", "-t", f"{keyspace}.t", "--unit-size", "4K", "--json")
    done = command.run(*load)

    # Then the command names the host that takes no part, and every unit is done once, elsewhere
    assert done.code == 0, done
    assert f"1 worker ({other}) runs ringhaul" in done.err
    assert (done.summary["rows"], done.summary["rejected"]) == (len(ROWS), 0)
    status = mix.ledger.status(done.summary["job"])
    assert (status.fails, status.done) == (0, status.units)
    assert status.totals["rows"] == len(ROWS)
    assert_table(cassandra_session, f"{keyspace}.t", "id, a", ROWS)
    reasons = released(mix, done.summary["job"])
    assert reasons, "the other host's worker got no message"
    assert all(one.startswith(f"{other}: cannot read the job (the job has") for one in reasons)
    work = host_work(read_facts(mix.ledger, status))
    assert [(one.host, one.units, one.rows) for one in work] == [(reader, status.units, len(ROWS))]
