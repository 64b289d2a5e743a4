"""Judgements of clocks, from measured bounds."""

from __future__ import annotations

import pytest

from producer.doctor.clocks import judge_clocks, one_clock, relative_clocks
from producer.doctor.finding import State
from producer.doctor.hosts import WorkerReport
from ringhaul.ledger.workers import Worker
from tasks.host.clock import Offset
from tasks.host.report import HostReport, HostView, Machine, Node

HERE = Offset(0, 0)


def near(ms: float, width: float = 2) -> Offset:
    return Offset(ms - width / 2, ms + width / 2)


def report(host: str, broker: Offset, *nodes: Node, boot: str = "b") -> WorkerReport:
    seen = HostReport(
        machine=Machine(boot=boot), broker_clock=broker, cluster=HostView(nodes=nodes)
    )
    return WorkerReport(Worker(host, 1, 1), seen)


def test_clocks_that_agree_are_fine() -> None:
    found = judge_clocks({"this host": HERE, "a": near(20), "b": near(-100)})
    assert found.state is State.OK and found.text == "3 clocks are within 101 ms"


@pytest.mark.parametrize(
    ("ms", "state", "words"),
    [
        (150, State.OK, ""),
        (300, State.WARNING, "b is 0.3 s ahead, compared"),
        (-300, State.WARNING, "b is 0.3 s behind, compared"),
        (3_600_000, State.FAULT, "b is 3,600.0 s ahead, compared"),
    ],
)
def test_a_clock_that_is_apart_is_named(ms: float, state: State, words: str) -> None:
    found = judge_clocks({"this host": HERE, "a": near(1), "b": near(ms)})
    assert found.state is state and words in found.text
    assert ("chrony" in found.advice) == (state is not State.OK)


def test_this_host_is_named_if_it_is_the_one_that_is_wrong() -> None:
    found = judge_clocks({"this host": HERE, "a": near(9000), "b": near(9001), "c": near(9002)})
    assert found.state is State.FAULT
    assert "this host is 9.0 s behind" in found.text and "a is" not in found.text


def test_a_slow_round_trip_is_no_fault() -> None:
    """The clock may be right: it answered within 10 s, in which it showed 4 s more than ours."""
    found = judge_clocks({"this host": HERE, "a": near(1), "b": Offset(-1000, 9000)})
    assert found.state is State.UNCHECKED and "b is too slow to tell" in found.text
    # Beyond doubt despite the slow round trip.
    found = judge_clocks({"this host": HERE, "a": near(1), "b": Offset(5000, 15_000)})
    assert found.state is State.FAULT


def test_one_clock_alone_says_nothing() -> None:
    assert judge_clocks({"this host": HERE}).state is State.UNCHECKED


def test_what_workers_measured_becomes_relative_to_this_host() -> None:
    """The broker is 10 ms ahead of us and 510 ms of the worker: so the worker is 500 ms behind."""
    node = Node(address="10.0.0.1", clock=near(600))
    seen = relative_clocks(near(10), None, [report("w", near(510), node)])
    assert seen["w"] == Offset(-502, -498)
    assert seen["node 10.0.0.1"] == Offset(97, 103)
    mine = HostView(nodes=(Node(address="10.0.0.1", clock=near(100, 1)), Node(address="x")))
    seen = relative_clocks(near(10), mine, [report("w", near(510), node)])
    assert seen["node 10.0.0.1"] == Offset(99.5, 100.5) and "node x" not in seen
    assert set(relative_clocks(None, None, [report("w", near(510), node)])) == {"this host"}


@pytest.mark.parametrize(
    ("boot", "addresses", "other", "one"),
    [
        ("b", ["127.0.0.1", "localhost", "127.0.1.3"], "b", True),
        ("b", ["::1"], "b", True),
        ("b", ["10.0.0.1"], "b", False),
        ("b", ["queue.example"], "b", False),
        ("b", ["127.0.0.1"], "c", False),
        ("", ["127.0.0.1"], "", False),
    ],
)
def test_everything_on_one_kernel_has_one_clock(
    boot: str, addresses: list[str], other: str, one: bool
) -> None:
    reports = [report("w", HERE, boot=other)]
    assert one_clock(Machine(boot=boot), addresses, reports) is one
