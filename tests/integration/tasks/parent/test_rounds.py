"""Rounds of the workers' parent processes: all report a heartbeat, a few sweep for the fleet."""

from __future__ import annotations

import time

from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import KEEPERS_MAX, Worker, Workers
from tasks.parent.heartbeat import Heartbeat
from tasks.parent.rounds import Rounds
from tests.integration.tasks.conftest import Connected

QUEUES = ("ringhaul.load",)
#: Of a round that only reports the heartbeat, with the calls of its script.
COMMANDS_MAX = 12


def rounds_of(ledger: Ledger, worker: Worker) -> Rounds:
    return Rounds(
        ledger, worker, every_s=5.0, prefix="", heartbeat=Heartbeat(None), notes_queues=False
    )


def lose_a_unit(ledger: Ledger, job: str) -> None:
    """Create a job with a unit whose lease has expired."""
    ledger.create(job, {"kind": "load"}, "{}")
    ledger.add_units(job, 1, 0, ["a"])
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "t@celery@gone:1", 1)
    time.sleep(0.01)


def test_a_large_fleet_leaves_the_sweep_to_a_few(connected: Connected) -> None:
    ledger = connected.ledger
    fleet = [Worker(f"h{n}", n, 1, QUEUES) for n in range(KEEPERS_MAX + 3)]
    rounds = [rounds_of(ledger, worker) for worker in fleet]
    # Given a fleet in which everyone has made a round
    assert [one.keep() for one in rounds] == list(range(1, len(fleet) + 1))
    lose_a_unit(ledger, "ld-lost")
    # When those above the number of keepers make the next one, it costs a heartbeat
    before = commands(ledger)
    for one in rounds[KEEPERS_MAX:]:
        one.keep()
    assert commands(ledger) - before <= 3 * COMMANDS_MAX
    assert ledger.status("ld-lost").leased == 1
    # Then the sweep is one of the keepers'
    rounds[KEEPERS_MAX - 1].keep()
    assert ledger.status("ld-lost").leased == 0


def test_another_worker_sweeps_once_a_keeper_has_left_or_died(connected: Connected) -> None:
    ledger, workers = connected.ledger, Workers(connected.ledger.caller)
    keepers = [Worker(f"h{n}", n, 1, QUEUES) for n in range(KEEPERS_MAX)]
    for worker in keepers[1:]:
        assert workers.heartbeat(worker, 60_000).keeps
    assert workers.heartbeat(keepers[0], 1).keeps
    time.sleep(0.01)
    first, second = Worker("new", 1, 1, QUEUES), Worker("new", 2, 1, QUEUES)
    # Given one whose heartbeat has expired
    lose_a_unit(ledger, "ld-lost")
    rounds_of(ledger, first).keep()
    assert ledger.status("ld-lost").leased == 0
    # And one that leaves
    assert not workers.heartbeat(second, 60_000).keeps
    workers.leave(keepers[1])
    assert workers.heartbeat(second, 60_000).keeps
    # A keeper stays one
    assert workers.heartbeat(keepers[2], 60_000).keeps
    assert not workers.heartbeat(keepers[0], 60_000).keeps


def commands(ledger: Ledger) -> int:
    info = ledger.caller.client.info("stats")
    return int(info["total_commands_processed"])
