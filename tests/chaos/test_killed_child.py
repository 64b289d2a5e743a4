"""A pool process dies by SIGKILL at each point of a unit's life."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ringhaul.ledger import keys
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import (
    LedgerView,
    Rig,
    check_exact,
    check_table,
    kill,
    unit_records,
    write_source,
)


@pytest.mark.parametrize("point", ["after_claim", "mid_write", "after_write", "after_commit"])
def test_a_child_killed_at_any_point_loses_no_record(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path, point: str
) -> None:
    """
    1. A worker of two processes loads.
    2. The first one that reaches the point in unit 5 dies.
    3. Another attempt does the unit, at most once more.
    """
    struck = tmp_path / "struck"
    # The worker's parent notices the death: no other unit's lease may expire meanwhile.
    start_worker(2, RINGHAUL_WORKER_LEASE_S="60", _RINGHAUL_FAILPOINT=f"{point}:5:{struck}")
    source = write_source(tmp_path / "in.csv", 4000)
    with fleet.load(source) as load:
        summary = load.finish(1)
    assert struck.exists(), "no process was killed"
    check_exact(fleet, ledger_view, summary, source)
    # A unit that was committed before its process died does not run again.
    assert summary["repeated_units"] == (0 if point == "after_commit" else 1)


def test_a_killed_child_s_unit_does_not_wait_for_its_lease(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. Leases last 60 s.
    2. A process is killed in the middle of a unit.
    3. The worker's parent notices and reports it to the ledger: the unit is done within 15 s.
    """
    start_worker(2, RINGHAUL_WORKER_LEASE_S="60")
    source = write_source(tmp_path / "in.csv", 8000)
    with fleet.load(source, RINGHAUL_WORKER_LEASE_S="60") as load:
        unit, pid = ledger_view.child_at_work()
        kill(pid)
        struck_at = time.monotonic()
        done = keys.job_key(ledger_view.job, "done")
        wait_until(lambda: ledger_view.client.getbit(done, unit) == 1, f"unit {unit}", 15.0)
        assert time.monotonic() - struck_at < 15.0
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)


def test_a_poison_unit_is_given_up_and_no_other(
    fleet: Rig, ledger_view: LedgerView, start_worker: StartWorker, tmp_path: Path
) -> None:
    """
    1. Every process that claims unit 5 dies.
    2. After three starts the unit is given up, and all others are done.
    3. The job ends as QUARANTINED, exit code 4, and no count includes the unit's records.
    4. A worker without the poison resumes the job, and it is complete.
    """
    poisoned = start_worker(2, _RINGHAUL_FAILPOINT="after_claim:5")
    source = write_source(tmp_path / "in.csv", 4000)
    with fleet.load(source) as load:
        summary = load.finish(4)
    lost = unit_records(ledger_view, 5)
    good = {ordinal: row for ordinal, row in source.good.items() if ordinal not in lost}
    check_table(fleet, summary, good)
    assert summary["state"] == "QUARANTINED"
    assert (summary["units_quarantined"], summary["units_done"]) == (1, summary["units"] - 1)
    assert ledger_view.ledger.quarantined_units(ledger_view.job) == {5: "crashed"}
    assert summary["rows"] == len(good)
    assert summary["rejected"] == sum(ordinal not in lost for ordinal in source.bad)
    assert summary["records"] == source.records - len(lost)
    assert ledger_view.status().pending == ledger_view.status().leased == 0

    poisoned.terminate()
    poisoned.wait(60)
    start_worker(2)
    with fleet.started("resume", ledger_view.job) as resumed:
        summary = resumed.finish(1)
    check_exact(fleet, ledger_view, summary, source)
