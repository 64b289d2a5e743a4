"""Workers in groups: a job gets as many processes as its queue stands for."""

from __future__ import annotations

from pathlib import Path

from config.settings import load_settings
from producer.tune.worker_groups import WorkerGroups
from ringhaul.ledger.workers import Workers
from tasks.connect import open_ledger
from tasks.private_queues import is_private
from tests.integration.conftest import Settle

PREFIX = "ringhaul:mq:"


def test_each_number_has_its_processes_and_none_is_started_twice(
    tmp_path: Path, settle: Settle
) -> None:
    """
    Given groups for 1 and 3 processes
    When they are up
    Then the queue of 1 has one process, that of 3 has three, and there are three in all
    And at the end there is no process, no registration and no queue
    """
    settings = settle(
        CLUSTER_CONTACT_POINTS="127.0.0.1", CLUSTER_PORT=1, STATE_DIR=tmp_path / "state"
    )
    ledger = open_ledger(settings)
    groups = WorkerGroups(load_settings(), "abc123", [3, 1])
    with groups.running():
        groups.wait(ledger)
        alive = Workers(ledger.caller).alive()
        for count in (1, 3):
            queue = groups.label(count)
            assert is_private(queue)
            assert sum(worker.slots for worker in alive if queue in worker.queues) == count
        assert sum(worker.slots for worker in alive) == 3
    assert Workers(ledger.caller).alive() == []
    assert not ledger.caller.client.keys(f"{PREFIX}*ringhaul.own.*")
    ledger.caller.client.close()
