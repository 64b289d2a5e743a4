"""Checks by workers' parent processes, requested and answered through Redis."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from config.celery_config import QUEUE_LOAD
from config.settings import load_settings
from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.host_requests import HostRequests
from ringhaul.ledger.openings import Openings
from ringhaul.ledger.workers import Worker
from ringhaul.storage import preflight
from tasks.host.report import read_report
from tasks.host.services import OPENINGS_FACTOR
from tasks.parent import preflight as parent_preflight
from tasks.parent.preflight import HostChecks
from tests.integration.conftest import Settle

ME = Worker("here", 1, 2, (QUEUE_LOAD,))


@pytest.fixture
def caller(broker_url: str) -> Iterator[Caller]:
    with redis.Redis.from_url(broker_url) as client:
        yield Caller(client)


@pytest.fixture
def mine(caller: Caller) -> Iterator[HostChecks]:
    one = HostChecks(caller, ME, load_settings().settings, os.environ)
    yield one
    one.end()
    for process in one._leaving:
        process.wait(10)


def answer(caller: Caller, name: str, *workers: HostChecks) -> dict[str, object]:
    """Poll as the housekeepers do, until there is a final answer."""
    give_up = time.monotonic() + 30
    while True:
        longest_s = 0.0
        for one in workers:
            began = time.monotonic()
            one.poll()
            longest_s = max(longest_s, time.monotonic() - began)
        assert longest_s < 2, "a worker's parent process was held up"
        found = HostRequests(caller).answers(name).get(ME, {})
        if found.keys() - {"begun"}:
            return found
        assert time.monotonic() < give_up, found
        time.sleep(0.02)


def request_check(caller: Caller, *paths: Path, queue: str = QUEUE_LOAD) -> str:
    files = [(str(path), 2, "") for path in paths]
    return HostRequests(caller).send({"queues": [queue], "what": preflight.request(files)})


def test_a_check_is_requested_and_answered(
    caller: Caller, mine: HostChecks, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("x\n")
    name = request_check(caller, tmp_path / "x.csv", tmp_path / "none.csv")
    assert answer(caller, name, mine) == {
        "wrong": [[f"{tmp_path}/none.csv", "No such file or directory"]]
    }
    assert not mine.busy
    assert 0 < caller.command("TTL", keys.look_key(name)) <= keys.LOOK_TTL_S
    assert 0 < caller.command("TTL", keys.seen_key(name)) <= keys.LOOK_TTL_S
    HostRequests(caller).forget(name)
    assert caller.command("KEYS", "ringhaul:look*") == []


def test_a_check_for_another_queue_is_ignored(
    caller: Caller, mine: HostChecks, tmp_path: Path
) -> None:
    other = request_check(caller, tmp_path, queue="ringhaul.load.dc2")
    name = request_check(caller, tmp_path / "none.csv")
    answer(caller, name, mine)
    assert HostRequests(caller).answers(other) == {}


def test_a_hanging_check_does_not_block_others(
    caller: Caller, mine: HostChecks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a mount whose server is down. Other checks are answered meanwhile."""
    hanging = tmp_path / "hanging.py"
    hanging.write_text(
        'import os, time\nos.write(1, b\'{"at": "/mnt/dead"}\\n\')\ntime.sleep(600)\n'
    )
    monkeypatch.setattr(parent_preflight, "PATHS_S", 3.0)
    right = preflight.__file__
    monkeypatch.setattr(preflight, "__file__", str(hanging))
    stuck = request_check(caller, tmp_path)
    while not mine.busy:
        mine.poll()
    monkeypatch.setattr(preflight, "__file__", right)
    quick = request_check(caller, tmp_path / "none.csv")
    assert "wrong" in answer(caller, quick, mine)
    assert answer(caller, stuck, mine) == {"stuck": "/mnt/dead"}
    assert not mine.busy


def test_a_failed_check_is_reported(
    caller: Caller, mine: HostChecks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing.py").write_text("raise SystemExit(7)")
    monkeypatch.setattr(preflight, "__file__", str(tmp_path / "failing.py"))
    assert answer(caller, request_check(caller, tmp_path), mine) == {
        "failed": "the check ended with 7"
    }


def test_a_check_that_cannot_start_is_reported(
    caller: Caller, mine: HostChecks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    found = answer(caller, request_check(caller, tmp_path), mine)
    assert "No such file or directory" in str(found["failed"])
    assert not mine.busy


def test_a_check_of_a_url_needs_packages(caller: Caller, mine: HostChecks) -> None:
    files = [("s3://bucket/x.csv", 2, "")]
    name = HostRequests(caller).send({"queues": [QUEUE_LOAD], "what": preflight.request(files)})
    mine._access |= {"schemes": ("https",)}
    wrong: Any = answer(caller, name, mine)["wrong"]
    ((url, why),) = wrong
    assert url == "s3://bucket/x.csv" and "s3:// is not among" in why


def request_report(caller: Caller) -> str:
    return HostRequests(caller).send(
        {"queues": [QUEUE_LOAD], "what": preflight.request([]), "host": True}
    )


@pytest.fixture
def reporting(caller: Caller, settle: Settle, tmp_path: Path) -> Iterator[HostChecks]:
    """A worker's checks, with the test's broker and a cluster that is down."""
    settings = settle(CLUSTER_PORT=1, CLUSTER_CONNECT_TIMEOUT_S=2, STATE_DIR=tmp_path / "state")
    one = HostChecks(caller, ME, settings, os.environ)
    yield one
    one.end()
    for process in one._leaving:
        process.wait(10)


def test_a_host_reports_what_it_sees(caller: Caller, reporting: HostChecks, tmp_path: Path) -> None:
    report = read_report(answer(caller, request_report(caller), reporting)["host"])
    assert report is not None
    assert report.versions["ringhaul"] and report.settings["cluster.port"] == 1
    assert report.machine is not None
    assert [folder.path for folder in report.machine.folders] == [
        str(tmp_path / "state"),
        str(tmp_path / "state" / "spill"),
    ]
    assert report.broker_clock is not None
    assert report.broker_clock.low_ms <= 0 <= report.broker_clock.high_ms, "it is one clock"
    assert report.refused == ""
    assert report.cluster is not None and "no node answers" in report.cluster.error
    # Nothing stays in Redis but the answer.
    names = {key.decode().split(":")[1] for key in caller.command("KEYS", "ringhaul:*")}
    assert names == {"look", "looks"}


def test_hosts_do_not_all_open_sessions_at_once(caller: Caller, reporting: HostChecks) -> None:
    """While all places are taken, the cluster is not looked at, and the rest is reported."""
    places = OPENINGS_FACTOR * load_settings().settings.worker.session_openings_max
    openings = Openings(caller)
    for _ in range(places):
        assert openings.acquire("doctor", places, 60_000, 0)
    report = read_report(answer(caller, request_report(caller), reporting)["host"])
    assert report is not None and report.cluster is None and report.broker_clock is not None


def test_a_report_without_its_slow_parts(
    caller: Caller, reporting: HostChecks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        'import os, time\nos.write(1, b\'{"versions": {"ringhaul": "1"}}\\n\')\ntime.sleep(600)\n'
    )
    monkeypatch.setattr(parent_preflight, "HOST_S", 3.0)
    monkeypatch.setattr(parent_preflight, "HOST_SCRIPT", str(slow))
    assert answer(caller, request_report(caller), reporting) == {
        "host": {"versions": {"ringhaul": "1"}}
    }
    assert not reporting.busy


def test_a_report_that_fails_is_answered(
    caller: Caller, reporting: HostChecks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing.py").write_text("raise SystemExit(7)")
    monkeypatch.setattr(parent_preflight, "HOST_SCRIPT", str(tmp_path / "failing.py"))
    assert answer(caller, request_report(caller), reporting) == {"failed": "the check ended with 7"}


def test_an_earlier_version_answers_a_request_for_a_report(
    caller: Caller, mine: HostChecks
) -> None:
    """It knows nothing of `host`, and checks what there is to check: nothing."""
    what = preflight.request([])
    name = HostRequests(caller).send({"queues": [QUEUE_LOAD], "what": what})
    assert answer(caller, name, mine) == {"wrong": []}
