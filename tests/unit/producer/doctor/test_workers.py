"""Judgements of what workers report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from producer.doctor.finding import Finding, State
from producer.doctor.hosts import WorkerReport
from producer.doctor.workers import judge_presence, judge_reports
from ringhaul.ledger.workers import Worker
from tasks.host.clock import Offset
from tasks.host.report import Folder, HostReport, HostView, Machine, Node

VERSIONS = {"ringhaul": "1.0", "celery": "5.7"}
SETTINGS: dict[str, Any] = {
    "broker.visibility_timeout_s": 21600,
    "worker.lease_s": 60.0,
    "query.spill_dir": None,
}
ROOM = (Folder(role="state", path="/s", free_bytes=2**40),)
GOOD = HostReport(
    versions=VERSIONS,
    settings=SETTINGS,
    machine=Machine(descriptors=4096, folders=ROOM, synchronised=True, boot="b"),
    broker_clock=Offset(0, 0),
    refused="",
    cluster=HostView(name="prod", nodes=(Node(address="10.0.0.1"),)),
)


def reported(host: str, **changes: Any) -> WorkerReport:
    return WorkerReport(Worker(host, 1, 2), HostReport(**(vars(GOOD) | changes)))


def judged(*reports: WorkerReport, settings: Mapping[str, Any] = SETTINGS) -> dict[str, Finding]:
    found = judge_reports(
        reports,
        versions=VERSIONS,
        settings=settings,
        cluster_name="prod",
        one_clock=False,
        rights_advice="give it the rules",
    )
    return {finding.check: finding for finding in found if finding.state is not State.OK}


def test_good_reports_give_no_problem() -> None:
    assert judged(reported("a"), reported("b")) == {}
    assert judged() == {}


def test_a_worker_of_another_version_is_named() -> None:
    (found,) = judged(
        reported("a"), reported("b", versions=VERSIONS | {"ringhaul": "0.9"})
    ).values()
    assert (found.check, found.state) == ("versions", State.WARNING)
    assert found.text == "b: ringhaul 0.9 (here 1.0)"
    assert "same versions on every host" in found.advice


def test_a_worker_with_other_settings_is_named() -> None:
    odd = reported("b", settings=SETTINGS | {"worker.lease_s": 10.0})
    (found,) = judged(reported("a"), odd, reported("c")).values()
    assert (found.check, found.text) == ("settings", "b: worker.lease_s = 10.0 (others 60.0)")
    # What most have is right, even if this command has something else.
    found = judged(odd, odd, reported("c"))["settings"]
    assert found.text == "c: worker.lease_s = 60.0 (others 10.0)"


def test_a_setting_of_commands_is_compared_with_this_one() -> None:
    mine = SETTINGS | {"query.spill_dir": "/shared", "worker.lease_s": 5.0}
    found = judged(reported("a"), settings=mine)["settings"]
    assert found.text == "this host: query.spill_dir = /shared (workers nothing)"


def test_visibility_timeouts_must_agree() -> None:
    odd = reported("b", settings=SETTINGS | {"broker.visibility_timeout_s": 3600})
    (found,) = judged(reported("a"), odd).values()
    assert found.check == "visibility" and found.text == "b: 3600 s; this host: 21600 s"


def test_a_host_without_the_cluster_is_named() -> None:
    cut = reported("b", cluster=HostView(error="no node answers"))
    (found,) = judged(reported("a"), cut, cut).values()
    assert (found.check, found.state, found.text) == ("cluster", State.FAULT, "b: no node answers")


def test_a_host_with_another_cluster_is_named() -> None:
    (found,) = judged(reported("a"), reported("b", cluster=HostView(name="test"))).values()
    assert found.state is State.FAULT and found.text == "b: connected to test"


def test_a_host_that_misses_a_node_is_named() -> None:
    nodes = (Node(address="10.0.0.1"), Node(address="10.0.0.2", error="timed out"))
    far = Node(address="10.9.9.9", used=False, error="not contacted")
    (found,) = judged(reported("b", cluster=HostView(name="prod", nodes=(*nodes, far)))).values()
    assert found.text == "b: no answer from 10.0.0.2"


def test_a_worker_without_rights_is_named() -> None:
    (found,) = judged(reported("b", refused="user w may not run BRPOP")).values()
    assert (found.check, found.advice) == ("rights", "give it the rules")
    assert found.text == "b: user w may not run BRPOP"


def test_the_worst_host_of_a_check_is_named() -> None:
    few = reported("b", machine=Machine(descriptors=64, folders=ROOM))
    fewer = reported("c", machine=Machine(descriptors=512, folders=ROOM))
    found = judged(reported("a"), few, fewer)["descriptors"]
    assert found.state is State.FAULT and found.text.startswith("b: 64 open files")


def test_missing_parts_and_silent_workers_are_named() -> None:
    found = judged(reported("b", cluster=None, machine=None))["reports"]
    assert found.state is State.UNCHECKED and "b: machine, cluster" in found.text
    silent = WorkerReport(Worker("c", 1, 2), None, "it does not answer")
    up, reports = judge_presence([reported("a"), silent], embedded=False)
    assert up.text == "4 processes on 2 hosts"
    assert reports.state is State.WARNING and reports.text == "c: it does not answer"
    (none,) = judge_presence([], embedded=False)
    assert none.state is State.WARNING and "ringhaul worker" in none.advice
    (own,) = judge_presence([], embedded=True)
    assert own.state is State.OK


def test_many_hosts_are_counted() -> None:
    cut = HostView(error="no node answers")
    (found,) = judged(*(reported(f"h{n}", cluster=cut) for n in range(9))).values()
    assert found.text == "h0, h1, h2, h3, h4 and 4 more: no node answers"
